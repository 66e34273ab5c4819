//! Walks over the parameters of a module, with their names: `down.0.out.weight`.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// Visits the parameters of a module with their names.
pub trait NamedVisitor {
    /// Called for each parameter.
    fn visit<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>);
}

/// Replaces the parameters of a module, by their names.
pub trait NamedMapper {
    /// Returns what takes the place of a parameter.
    fn map<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>>;
}

/// Shows every parameter to the visitor, and gives it back.
pub fn visit_named<M: Module, V: NamedVisitor>(module: &M, visitor: V) -> V {
    let mut walk = Walk { path: Vec::new(), what: visitor };
    module.visit(&mut walk);
    walk.what
}

/// The module with every parameter as the mapper gives it.
pub fn map_named<M: Module>(module: M, mapper: impl NamedMapper) -> M {
    module.map(&mut Walk { path: Vec::new(), what: mapper })
}

struct Walk<W> {
    path: Vec<String>,
    what: W,
}

impl<V: NamedVisitor> ModuleVisitor for Walk<V> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.what.visit(&self.path.join("."), param);
    }
}

impl<M: NamedMapper> ModuleMapper for Walk<M> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.what.map(&self.path.join("."), param)
    }
}

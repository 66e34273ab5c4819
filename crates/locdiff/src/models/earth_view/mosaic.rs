//! The mosaic of an atlas: packed in the program, and unpacked only if something is registered.

use std::sync::OnceLock;

use locdiff_earth::{Error, Imagery};
use rayon::ThreadPoolBuilder;

/// A mosaic of the Earth.
#[derive(Debug)]
pub struct Mosaic {
    in_program: &'static [u8],
    unpacked: OnceLock<Imagery>,
}

impl Mosaic {
    /// From bytes of [`Imagery::pack`].
    pub fn unpack(bytes: &[u8]) -> Result<Mosaic, Error> {
        Ok(Mosaic { in_program: &[], unpacked: Imagery::unpack(bytes)?.into() })
    }

    /// The same later: only bytes that can't be damaged wait so long.
    pub(super) fn in_program(bytes: &'static [u8]) -> Mosaic {
        Mosaic { in_program: bytes, unpacked: OnceLock::new() }
    }

    /// The mosaic's pixels, unpacked at the first call.
    pub fn imagery(&self) -> &Imagery {
        self.unpacked.get_or_init(|| {
            // By threads of its own: a thread of the pool that waited here for others could begin with another picture,
            // and wait for itself.
            let unpack =
                || Imagery::unpack(self.in_program).expect("the files in the program are whole");
            let pool = ThreadPoolBuilder::new().build().expect("threads");
            std::thread::scope(|scope| scope.spawn(|| pool.install(unpack)).join())
                .expect("no panic")
        })
    }

    /// The unpacked pixels, without the mosaic.
    pub fn into_imagery(mut self) -> Imagery {
        self.imagery();
        self.unpacked.take().expect("it was unpacked")
    }

    /// Does some work while the mosaic is unpacked beside it.
    pub(super) fn while_unpacking<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.unpacked.get().is_some() {
            return work();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| self.imagery());
            work()
        })
    }
}

//! Embedding images: every kind of input, and every kind of mishap. All pictures are made here.

mod bad_images;
mod inputs;
mod interruptions;
mod places;
mod rows;
mod settings;
mod studio;

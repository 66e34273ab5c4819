//! Threads that read and decode images ahead of the encoder, and hand them over in order.
//!
//! One thread walks the input, several decode (or only fetch), and the caller's encodes. However slow one image
//! is, and however many there are, only a window of them is in memory: the [`Gate`] lets an
//! image in when an earlier one has been handed over.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard};

use locdiff::Photo;
use locdiff::photo::{Crops, PhotoError, Preprocessing, ReadOptions, gps_of};
use locdiff_sphere::LatLon;

use super::item::{Bad, Content, Item, Stated};

/// Encoded pictures out of tars that wait for a decoder, together; one is always let in.
const MAX_WAITING_BYTES: usize = 128 << 20;

/// How images become pixels.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// Limits to what an image may cost.
    pub read: ReadOptions,
    /// Crops of each image; each is embedded.
    pub views: Crops,
    /// What is done to them for the encoder.
    pub preprocessing: Preprocessing,
}

/// An image that is ready for the encoder, or bad.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) outcome: Result<Pixels, Bad>,
}

/// A picture, ready for an encoder.
#[derive(Debug)]
pub struct Pixels {
    /// Where it was taken, by the input or else by the camera.
    pub place: Option<LatLon>,
    /// `[views, 3, crop, crop]`
    pub numbers: Vec<f32>,
}

/// What waits to be prepared.
pub trait Waiting: Send {
    /// Memory that it takes while it waits.
    fn bytes(&self) -> usize;
}

/// Runs `consume` on this thread, with what `threads` others have prepared, in the order of `feed`, at most `window` of
/// them ahead. When it returns, or panics, the others end.
pub fn run_ahead<I: Waiting, T: Send, R>(
    feed: impl FnOnce(&mut dyn FnMut(I) -> bool) + Send,
    prepare: &(dyn Fn(I) -> T + Sync),
    threads: usize,
    window: usize,
    consume: impl FnOnce(&mut Ordered<'_, T>) -> R,
) -> R {
    let gate = Gate::new(window);
    let (jobs, waiting) = channel();
    let (done, results) = channel();
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        let (gate, waiting) = (&gate, &waiting);
        scope.spawn(move || {
            let mut number = 0;
            feed(&mut |item| {
                let let_in = gate.enter(item.bytes()) && jobs.send((number, item)).is_ok();
                number += 1;
                let_in
            });
        });
        for _ in 0..threads {
            let done = done.clone();
            scope.spawn(move || work(waiting, gate, prepare, &done));
        }
        // Else the receiver would wait for this one when all others are gone.
        drop(done);
        consume(&mut Ordered { results, gate, early: BTreeMap::new(), next: 0 })
    })
}

fn work<I: Waiting, T>(
    waiting: &Mutex<Receiver<(u64, I)>>,
    gate: &Gate,
    prepare: &dyn Fn(I) -> T,
    done: &Sender<(u64, T)>,
) {
    loop {
        let job = lock(waiting).recv();
        let Ok((number, item)) = job else { return };
        if lock(&gate.state).closed {
            return;
        }
        let bytes = item.bytes();
        let prepared = prepare(item);
        gate.decoded(bytes);
        if done.send((number, prepared)).is_err() {
            return;
        }
    }
}

/// Images in the order of the input, whichever was decoded first.
pub struct Ordered<'a, T> {
    results: Receiver<(u64, T)>,
    gate: &'a Gate,
    early: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Iterator for Ordered<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(prepared) = self.early.remove(&self.next) {
                self.next += 1;
                self.gate.leave();
                return Some(prepared);
            }
            let (number, prepared) = self.results.recv().ok()?;
            self.early.insert(number, prepared);
        }
    }
}

impl<T> Drop for Ordered<'_, T> {
    fn drop(&mut self) {
        lock(&self.gate.state).closed = true;
        self.gate.changed.notify_all();
    }
}

/// Counts what is between the input and the encoder.
struct Gate {
    window: usize,
    state: Mutex<Inside>,
    changed: Condvar,
}

struct Inside {
    images: usize,
    bytes: usize,
    closed: bool,
}

impl Gate {
    fn new(window: usize) -> Gate {
        let state = Mutex::new(Inside { images: 0, bytes: 0, closed: false });
        Gate { window, state, changed: Condvar::new() }
    }

    /// Waits until there is room. False if nothing more is wanted.
    fn enter(&self, bytes: usize) -> bool {
        let no_room = |inside: &mut Inside| {
            let too_many = inside.images >= self.window;
            let too_much = inside.bytes > 0 && inside.bytes + bytes > MAX_WAITING_BYTES;
            !inside.closed && (too_many || too_much)
        };
        let waited = self.changed.wait_while(lock(&self.state), no_room);
        let mut inside = waited.unwrap_or_else(|poison| poison.into_inner());
        inside.images += 1;
        inside.bytes += bytes;
        !inside.closed
    }

    fn decoded(&self, bytes: usize) {
        lock(&self.state).bytes -= bytes;
        self.changed.notify_all();
    }

    fn leave(&self) {
        lock(&self.state).images -= 1;
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Preparation {
    pub(super) fn prepare(&self, item: Item) -> Prepared {
        let Item { id, path, place, content } = item;
        let bytes = || match content {
            Content::Bad(bad) => Err(bad),
            Content::Bytes(bytes) => Ok(bytes),
            Content::File(path) => read_file(&path, self.read.max_bytes),
        };
        let outcome = place.checked().and_then(|_| self.pixels(&place, &bytes()?));
        Prepared { id, path, outcome }
    }

    /// What an encoder takes of an encoded picture. A decoder that panics makes it a bad one.
    pub fn pixels(&self, place: &Stated, bytes: &[u8]) -> Result<Pixels, Bad> {
        let pixels = || {
            let stated = place.checked()?;
            let photo = Photo::decode(bytes, &self.read)
                .map_err(|error: PhotoError| Bad::new(error.kind(), error))?;
            let by_camera = || {
                let (latitude, longitude) = gps_of(bytes)?;
                LatLon::new(latitude, longitude).ok()
            };
            let place = stated.or_else(by_camera);
            let numbers = self.views.prepare(&photo, &self.preprocessing);
            Ok(Pixels { place, numbers })
        };
        let pixels = catch_unwind(AssertUnwindSafe(pixels));
        pixels.unwrap_or_else(|panic| Err(Bad::new(Bad::PANIC, said(&*panic))))
    }
}

/// The bytes of a file that holds a picture.
pub fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Bad> {
    let unreadable = |error: io::Error| Bad::new(Bad::UNREADABLE, error);
    let metadata = path.metadata().map_err(unreadable)?;
    // Opening a pipe would wait for somebody who writes into it.
    if !metadata.is_file() {
        return Err(Bad::new(Bad::UNREADABLE, "not a regular file"));
    }
    let length = metadata.len();
    if length > max_bytes {
        let message = format!("too large: {length} bytes, the limit is {max_bytes}");
        return Err(Bad::new(Bad::TOO_LARGE, message));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    let file = File::open(path).map_err(unreadable)?;
    // It may have grown since; then the decoder finds it too large.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("decoding ended in a panic: {}", text.unwrap_or("no reason given"))
}

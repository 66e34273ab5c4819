//! Memory for requests, counted before it is taken: whatever clients send, a server takes no more than it was given.
//!
//! A third is for what is received and answered: bodies as they arrive, and answers until the client has read them. Who finds
//! nothing left is refused. The rest is for work: decoding images, reading and drawing densities. Work waits for its turn, first
//! come, first served.
//!
//! The second lane has half of the memory for work, the others have the other half. What needs more than a quarter of it all comes
//! second, whosever it is. What needs more than a half takes all of the second half and some of the first, half of which is left for
//! the other lanes. What needs more is refused.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::lanes::Lane;
use crate::problem::{BUSY, Problem, TOO_LARGE};
use crate::settings::Settings;

/// Memory is handed out in pieces of this many bytes.
pub(crate) const PIECE: usize = 4096;
/// How long large work looks for memory of the first lane before it stands in the way of others that want some.
const PATIENCE: Duration = Duration::from_secs(1);
/// And how often.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// The most that a connection reads ahead: the head of a request, or a part of its body.
pub(crate) const READ_AHEAD: usize = 32 << 10;

/// Memory that is taken until this is dropped.
pub(crate) struct Held {
    of_all: OwnedSemaphorePermit,
    /// The same, of what one client may take.
    of_one: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn pieces(&self) -> usize {
        self.of_all.num_permits()
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.pieces() * PIECE
    }
}

/// What there is, for everybody together.
#[derive(Clone)]
pub(crate) struct Memory {
    requests: Arc<Semaphore>,
    /// What one client may take of it.
    of_one: Option<Arc<Semaphore>>,
    most_for_one: usize,
    /// For work: of the first two lanes, and of the second one.
    work: [Arc<Semaphore>; 2],
    /// Pieces of each.
    most_work: [usize; 2],
}

/// Memory for work, until this is dropped.
pub(crate) struct Working {
    lane: Lane,
    _held: [Option<OwnedSemaphorePermit>; 2],
}

impl Working {
    /// On whose threads it is to be done.
    pub(crate) fn lane(&self) -> Lane {
        self.lane
    }
}

impl Memory {
    pub(crate) fn new(settings: &Settings) -> Memory {
        let [requests, work] = [settings.request_memory(), settings.work_memory()]
            .map(|bytes| ((bytes / PIECE as u64) as usize).clamp(1, Semaphore::MAX_PERMITS));
        let halves = [work.div_ceil(2), work / 2];
        Memory {
            requests: Arc::new(Semaphore::new(requests)),
            of_one: None,
            most_for_one: (settings.client_memory() as usize / PIECE).clamp(1, requests),
            work: halves.map(|half| Arc::new(Semaphore::new(half))),
            most_work: halves,
        }
    }

    /// Memory for something that is received or answered, if there is enough left.
    pub(crate) fn take(&self, bytes: usize) -> Result<Held, Problem> {
        let take = |from: &Arc<Semaphore>, whose| {
            Arc::clone(from).try_acquire_many_owned(pieces(bytes)).map_err(|_| {
                let detail =
                    format!("the memory for requests is used by {whose} requests: retry in 1 s");
                Problem::new(BUSY, detail).retry_after(1)
            })
        };
        let of_one = self.of_one.as_ref().map(|own| take(own, "your other")).transpose()?;
        Ok(Held { of_all: take(&self.requests, "other")?, of_one })
    }

    /// The same memory, as far as one client may take it.
    pub(crate) fn for_one(&self, own: &Arc<Semaphore>) -> Memory {
        Memory { of_one: Some(Arc::clone(own)), ..self.clone() }
    }

    /// How many pieces one client may take.
    pub(crate) fn pieces_for_one(&self) -> usize {
        self.most_for_one
    }

    /// The same for so many bytes more or fewer.
    pub(crate) fn resize(&self, mut held: Held, bytes: usize) -> Result<Held, Problem> {
        let (now, wanted) = (held.pieces(), pieces(bytes) as usize);
        if wanted > now {
            let more = self.take((wanted - now) * PIECE)?;
            held.of_all.merge(more.of_all);
            if let (Some(own), Some(more)) = (&mut held.of_one, more.of_one) {
                own.merge(more);
            }
        } else {
            drop(held.of_all.split(now - wanted));
            drop(held.of_one.as_mut().and_then(|own| own.split(now - wanted)));
        }
        Ok(held)
    }

    /// Whether there could ever be so much memory for the work on one image.
    pub(crate) fn check_work(&self, bytes: u64) -> Result<(), Problem> {
        let most = self.second_bytes();
        if bytes <= most {
            return Ok(());
        }
        let detail = format!(
            "decoding this image takes {} MB of memory, the limit is {} MB: send a smaller image, or raise --max-memory-bytes of the server",
            bytes >> 20,
            most >> 20
        );
        Err(Problem::new(TOO_LARGE, detail))
    }

    /// What all work of either lane may take while there is some of the other.
    pub(crate) fn lane_bytes(&self) -> u64 {
        (self.most_work[1] * PIECE) as u64
    }

    /// The most that work of the first lane takes, alone.
    pub(crate) fn first_bytes(&self) -> u64 {
        self.lane_bytes() / 2
    }

    /// The most that work of the second lane takes, alone: work of the first one finds what it needs beside it.
    pub(crate) fn second_bytes(&self) -> u64 {
        let [first, second] = self.most_work;
        ((second + first / 2) * PIECE) as u64
    }

    /// Memory for work, when there is enough: at most what the second lane can have. It may be for another lane.
    pub(crate) async fn work(&self, lane: Lane, bytes: u64) -> Working {
        let take = async |lane: usize, pieces: usize| {
            let held = Arc::clone(&self.work[lane]).acquire_many_owned(pieces as u32).await;
            held.expect("this semaphore is never closed")
        };
        let lane = if bytes > self.first_bytes() { Lane::Second } else { lane };
        let own = usize::from(lane == Lane::Second);
        let all = pieces(bytes.min(self.second_bytes()) as usize) as usize;
        let rest = all.saturating_sub(self.most_work[own]);
        // In this order: who waits for the second lane keeps nothing from the first.
        let of_own = take(own, all - rest).await;
        if rest == 0 {
            return Working { lane, _held: [Some(of_own), None] };
        }
        // Whoever waits for much makes everybody wait who comes later, for as long as the longest work of the first lane takes.
        let looking = async {
            loop {
                match Arc::clone(&self.work[0]).try_acquire_many_owned(rest as u32) {
                    Ok(found) => return found,
                    Err(_) => sleep(LOOKS_EVERY).await,
                }
            }
        };
        let of_first = match timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => take(0, rest).await,
        };
        Working { lane, _held: [Some(of_own), Some(of_first)] }
    }

    /// An answer, whose memory is held until it was written or its connection is gone. `held` may be too little or too much.
    pub(crate) fn answer(&self, bytes: Vec<u8>, held: Held) -> Result<Bytes, Problem> {
        let memory = self.resize(held, bytes.capacity())?;
        Ok(Bytes::from_owner(Answer { bytes, _memory: memory }))
    }
}

struct Answer {
    bytes: Vec<u8>,
    _memory: Held,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn pieces(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn memory() -> Memory {
        Memory::new(&Settings::default())
    }

    #[test]
    fn what_is_held_is_counted_until_it_is_dropped() {
        let memory = memory();
        let all = memory.requests.available_permits();
        let held = memory.take(10 * PIECE + 1).expect("room");
        assert_eq!(memory.requests.available_permits(), all - 11);
        let held = memory.resize(held, 3 * PIECE).expect("less");
        assert_eq!(memory.requests.available_permits(), all - 3);
        let held = memory.resize(held, 20 * PIECE).expect("more");
        assert_eq!(memory.requests.available_permits(), all - 20);
        assert!(memory.take((all - 19) * PIECE).is_err());
        let answer = memory.answer(vec![7; 5 * PIECE], held).expect("an answer");
        assert_eq!(memory.requests.available_permits(), all - 5);
        // Whoever writes it holds a part of it.
        let rest = answer.slice(PIECE..);
        drop(answer);
        assert_eq!(memory.requests.available_permits(), all - 5);
        drop(rest);
        assert_eq!(memory.requests.available_permits(), all);
    }

    #[test]
    fn one_client_leaves_something_for_others() {
        let memory = memory();
        let [greedy, other] =
            [0, 1].map(|_| memory.for_one(&Arc::new(Semaphore::new(memory.pieces_for_one()))));
        let mut held = Vec::new();
        while let Ok(more) = greedy.take(100 * PIECE) {
            held.push(more);
        }
        let problem = greedy.take(100 * PIECE).err().expect("its part is used");
        assert!(problem.detail().contains("your other requests"), "{}", problem.detail());
        assert!(other.take(100 * PIECE).is_ok());
        // Larger and smaller are counted for it too.
        let one = held.pop().expect("some");
        let one = greedy.resize(one, 50 * PIECE).expect("less");
        assert!(greedy.take(50 * PIECE).is_ok());
        assert!(greedy.resize(one, 300 * PIECE).is_err());
        drop(held);
        assert!(greedy.take(memory.pieces_for_one() * PIECE).is_ok());
    }

    #[test]
    fn what_never_fits_is_told() {
        let memory = memory();
        assert!(memory.check_work(memory.second_bytes()).is_ok());
        let problem = memory.check_work(memory.second_bytes() + 1).expect_err("too much");
        assert_eq!(problem.status(), 413);
        assert!(problem.detail().contains("--max-memory-bytes"), "{}", problem.detail());
    }

    #[tokio::test(start_paused = true)]
    async fn each_lane_has_half_and_large_work_takes_both() {
        let memory = memory();
        let at_once = |lane, bytes| {
            let mut context = Context::from_waker(Waker::noop());
            match pin!(memory.work(lane, bytes)).poll(&mut context) {
                Poll::Ready(held) => Some(held),
                Poll::Pending => None,
            }
        };
        let half = memory.lane_bytes();
        let apart = [Lane::First, Lane::Second];
        let lanes = apart.map(|lane| {
            // The first lane's is in two parts: more than a quarter of all memory comes second.
            let parts = if lane == Lane::First { 2 } else { 1 };
            let held = (0..parts).map(|_| at_once(lane, half / parts - PIECE as u64));
            let held: Vec<Working> = held.map(|held| held.expect("its half")).collect();
            assert!(held.iter().all(|held| held.lane() == lane));
            assert!(at_once(lane, 4 * PIECE as u64).is_none(), "no more");
            held
        });
        assert!(at_once(Lane::Long, 4 * PIECE as u64).is_none());
        for lane in apart {
            assert!(at_once(lane, half + 1).is_none(), "not while there is other work");
        }
        let [mut first, second] = lanes;
        drop(second);
        assert!(at_once(Lane::First, 2 * half).is_none());
        assert!(at_once(Lane::Second, half).is_some(), "who waited has taken nothing");
        // While it looks for memory, others find what there is.
        {
            let mut large = pin!(memory.work(Lane::First, 2 * half));
            let mut context = Context::from_waker(Waker::noop());
            assert!(large.as_mut().poll(&mut context).is_pending());
            first.pop();
            let small = at_once(Lane::First, half / 4).expect("a quarter");
            tokio::time::advance(PATIENCE + LOOKS_EVERY).await;
            assert!(large.as_mut().poll(&mut context).is_pending());
            assert!(at_once(Lane::First, half / 8).is_none(), "it has waited for long");
            drop(small);
            assert!(large.as_mut().poll(&mut context).is_ready());
        }
        drop(first);
        // The largest leaves half of the first lane's memory, whosever it is, and there is no larger.
        for (lane, bytes) in Lane::ALL.into_iter().zip([memory.second_bytes(), 2 * half, u64::MAX])
        {
            let held = at_once(lane, bytes).expect("most");
            assert_eq!(held.lane(), Lane::Second);
            assert!(at_once(Lane::Second, 1).is_none());
            assert!(at_once(Lane::First, memory.first_bytes()).is_some());
            let more = at_once(Lane::First, memory.first_bytes() + PIECE as u64);
            assert!(more.is_none(), "that comes second");
            drop(held);
        }
        assert!(apart.iter().all(|lane| at_once(*lane, half).is_some()));
    }
}

//! Slots for connections: so many in all, and half as many for one address. Where none is free, the connection that has waited longest
//! for a request is closed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A connection that has sent no request for so long may be closed for another one.
const HEAD_AGE: Duration = Duration::from_secs(1);
/// All connections of a server.
pub(crate) struct Slots {
    taken: Mutex<Taken>,
    freed: Notify,
    most: usize,
    most_of_one: usize,
}

#[derive(Default)]
struct Taken {
    next: u64,
    connections: HashMap<u64, Arc<Connection>>,
    of_address: HashMap<IpAddr, usize>,
}

/// One of them.
pub(crate) struct Connection {
    address: IpAddr,
    phase: Mutex<Phase>,
    close: Notify,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// Since when, for its first request.
    New(Instant),
    /// Requests are being received or answered.
    Busy,
    /// An answer is being written.
    Writing,
    /// It was written.
    Answered(Instant),
    /// Has to close.
    Closing,
}

/// The slot of a connection; free again when this is dropped.
pub(crate) struct Slot {
    number: u64,
    slots: Arc<Slots>,
    pub(crate) connection: Arc<Connection>,
}

impl Slots {
    /// `most` in all; half as many for one address, if addresses have limits.
    pub(crate) fn new(most: usize, limit_addresses: bool) -> Slots {
        let most = most.max(1);
        let most_of_one = if limit_addresses { most.div_ceil(2) } else { most };
        Slots { taken: Mutex::default(), freed: Notify::new(), most, most_of_one }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when a slot is free.
    pub(crate) async fn room(&self) {
        loop {
            {
                let taken = self.lock();
                if taken.connections.len() < self.most {
                    return;
                }
                taken.close_longest_idle(HEAD_AGE, |_| true);
            }
            // Idle ones become old enough without telling.
            let _ = tokio::time::timeout(HEAD_AGE / 10, self.freed.notified()).await;
        }
    }

    /// A slot for a connection, if its address has not too many; `many`: it stands for many clients.
    pub(crate) fn take(self: &Arc<Slots>, address: IpAddr, many: bool) -> Option<Slot> {
        let mut taken = self.lock();
        let own = taken.of_address.get(&address).copied().unwrap_or(0);
        // Its own oldest makes room, which takes a moment: one more than there should be. Who is too fast for itself
        // gets no second.
        let is_full = own >= self.most_of_one && !many;
        if is_full && !taken.close_longest_idle(Duration::ZERO, |one| one.address == address) {
            return None;
        }
        let connection = Arc::new(Connection {
            address,
            phase: Mutex::new(Phase::New(Instant::now())),
            close: Notify::new(),
        });
        let number = taken.next;
        taken.next += 1;
        taken.connections.insert(number, Arc::clone(&connection));
        *taken.of_address.entry(address).or_default() += 1;
        Some(Slot { number, slots: Arc::clone(self), connection })
    }
}

impl Taken {
    /// Whether there was one.
    fn close_longest_idle(&self, age: Duration, is_meant: impl Fn(&Connection) -> bool) -> bool {
        let idle = self.connections.values().filter(|connection| is_meant(connection));
        let idle = idle.filter_map(|connection| Some((connection.idle_since(age)?, connection)));
        let longest = idle.min_by_key(|(since, _)| *since);
        longest.is_some_and(|(_, connection)| connection.close_if_idle(age))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        taken.connections.remove(&self.number);
        let address = self.connection.address;
        if let Some(own) = taken.of_address.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                taken.of_address.remove(&address);
            }
        }
        drop(taken);
        self.slots.freed.notify_one();
    }
}

impl Connection {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has begun.
    pub(crate) fn begin(&self) {
        let mut phase = self.phase();
        if *phase != Phase::Closing {
            *phase = Phase::Busy;
        }
    }

    /// Its answer is there, to be written.
    pub(crate) fn end(&self) {
        let mut phase = self.phase();
        if *phase == Phase::Busy {
            *phase = Phase::Writing;
        }
    }

    /// Everything is written that there was.
    pub(crate) fn written(&self) {
        let mut phase = self.phase();
        if *phase == Phase::Writing {
            *phase = Phase::Answered(Instant::now());
        }
    }

    /// Completes when the connection has to close.
    pub(crate) async fn closing(&self) {
        self.close.notified().await;
    }

    fn close_if_idle(&self, age: Duration) -> bool {
        let mut phase = self.phase();
        let is_idle = phase.idle_since(age).is_some();
        if is_idle {
            *phase = Phase::Closing;
            self.close.notify_one();
        }
        is_idle
    }

    fn idle_since(&self, age: Duration) -> Option<Instant> {
        self.phase().idle_since(age)
    }
}

impl Phase {
    fn idle_since(self, age: Duration) -> Option<Instant> {
        match self {
            Phase::New(since) | Phase::Answered(since) => (since.elapsed() >= age).then_some(since),
            Phase::Busy | Phase::Writing | Phase::Closing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn age(place: &Slot, seconds: u64) {
        let since = Instant::now().checked_sub(Duration::from_secs(seconds)).expect("long ago");
        *place.connection.phase() = Phase::New(since);
    }

    #[tokio::test]
    async fn the_one_that_waited_longest_is_closed() {
        let slots = Arc::new(Slots::new(3, true));
        let [first, second, busy] =
            [1, 2, 3].map(|last| slots.take(address(last), false).expect("room"));
        age(&first, 20);
        age(&second, 30);
        age(&busy, 90);
        busy.connection.begin();
        let closing = async move {
            second.connection.closing().await;
            drop(second);
        };
        let both = async { tokio::join!(slots.room(), closing) };
        tokio::time::timeout(Duration::from_secs(9), both).await.expect("room at once");
        assert!(first.connection.idle_since(HEAD_AGE).is_some(), "stays");
        // Not while its answer is being written, however slowly.
        busy.connection.end();
        assert!(!busy.connection.close_if_idle(Duration::ZERO));
        busy.connection.written();
        assert!(busy.connection.idle_since(HEAD_AGE).is_none(), "just now");
        assert!(busy.connection.close_if_idle(Duration::ZERO));
    }

    #[test]
    fn one_address_takes_half() {
        let slots = Arc::new(Slots::new(4, true));
        let one: Vec<Slot> = (0..2).map(|_| slots.take(address(1), false).expect("room")).collect();
        age(&one[1], 10);
        let next = slots.take(address(1), false).expect("its oldest is closed");
        assert!(*one[1].connection.phase() == Phase::Closing);
        one[0].connection.begin();
        next.connection.begin();
        assert!(slots.take(address(1), false).is_none(), "all of them are busy");
        assert!(slots.take(address(2), false).is_some());
        assert!(slots.take(address(1), true).is_some(), "a proxy");
        drop((one, next));
        assert!(slots.lock().of_address.is_empty() && slots.lock().connections.is_empty());
        let unlimited = Arc::new(Slots::new(4, false));
        let all: Vec<_> = (0..4).filter_map(|_| unlimited.take(address(1), false)).collect();
        all.iter().for_each(|slot| slot.connection.begin());
        assert_eq!(all.len(), 4);
    }
}

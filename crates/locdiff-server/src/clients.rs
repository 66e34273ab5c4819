//! Who asks, and how much of the server one of them may take while others wait.
//!
//! A client is the key that it sends, or else its address. Each has a token bucket of seconds of processors for images and one for
//! densities, and a part of the memory for requests. A client whose bucket is empty comes second (`lanes`); one that is alone may use
//! all of the server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::memory::Memory;
use crate::settings::Settings;
use crate::threads::Stopwatch;

/// A full bucket is what is added in so many seconds.
const BURST_S: f64 = 4.0;
/// Who owed something comes second until it has so much of a full bucket again: who takes all that it can get stays there.
const FIRST_AGAIN: f64 = 0.9;
/// And the largest debt.
const LARGEST_DEBT_S: f64 = 60.0;
/// Requests of one client that are read or checked at the same time, which takes a core each.
const READ_AT_A_TIME: usize = 2;
/// A client that was not seen for so long has a full bucket, and need not be remembered.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// While there are too many clients, those to forget are looked for so often.
const CLEARED_EVERY: Duration = Duration::from_secs(1);
/// Clients that are remembered one by one; all others together count as one.
const MAX_CLIENTS: usize = 10_000;

/// Seconds that the processors for work have in a second.
fn cores() -> f64 {
    rayon::current_num_threads() as f64
}

/// The other end of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Identity {
    Key([u8; 32]),
    Address(IpAddr),
    Others,
}

/// Clients of the last minute.
pub(crate) struct Clients {
    known: Mutex<Known>,
    /// Seconds that are added to buckets in a second; none without a limit.
    share: Option<f64>,
    proxies: Vec<IpAddr>,
    memory_pieces: usize,
}

#[derive(Default)]
struct Known {
    clients: HashMap<Identity, Arc<Client>>,
    /// When clients were forgotten, last.
    cleared: Option<Instant>,
}

/// One of them.
pub(crate) struct Client {
    pub(crate) images: Arc<Bucket>,
    pub(crate) densities: Arc<Bucket>,
    reading: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl Clients {
    pub(crate) fn new(settings: &Settings, memory: &Memory) -> Clients {
        let share = settings.client_share().map(|share| share * cores());
        Clients {
            known: Mutex::default(),
            share,
            proxies: settings.trusted_proxies.iter().map(IpAddr::to_canonical).collect(),
            memory_pieces: memory.pieces_for_one(),
        }
    }

    /// Who sent a request: with a key that was accepted, or without.
    pub(crate) fn of(&self, peer: Peer, headers: &HeaderMap, key: Option<[u8; 32]>) -> Arc<Client> {
        let identity =
            key.map_or_else(|| Identity::Address(self.address(peer, headers)), Identity::Key);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known.clients.get(&identity) {
            return Arc::clone(client);
        }
        let is_full = known.clients.len() >= MAX_CLIENTS;
        // Looking through all of them takes a millisecond: not for every request.
        if is_full && known.cleared.is_none_or(|cleared| cleared.elapsed() >= CLEARED_EVERY) {
            known.clients.retain(|_, client| !client.is_forgotten());
            known.cleared = Some(Instant::now());
        }
        let is_full = known.clients.len() >= MAX_CLIENTS;
        let identity = if is_full { Identity::Others } else { identity };
        let client = known.clients.entry(identity).or_insert_with(|| {
            let [images, densities] = [(); 2].map(|()| Arc::new(Bucket::new(self.share)));
            let memory = Arc::new(Semaphore::new(self.memory_pieces));
            let reading = self.share.map_or(Semaphore::MAX_PERMITS, |_| READ_AT_A_TIME);
            let reading = Arc::new(Semaphore::new(reading));
            Arc::new(Client { images, densities, reading, memory })
        });
        Arc::clone(client)
    }

    /// Whether connections of an address stand for many clients.
    pub(crate) fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.contains(&address)
    }

    /// The address of a client, which may be behind a proxy that states it.
    fn address(&self, Peer(peer): Peer, headers: &HeaderMap) -> IpAddr {
        let address = peer.ip().to_canonical();
        if !self.is_proxy(address) {
            return network(address);
        }
        // What proxies have added is at the end.
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let parts = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let mut addresses = parts.map(|part| {
            let part = str::from_utf8(part).ok()?.trim();
            let with_port = || part.parse().ok().map(|address: SocketAddr| address.ip());
            part.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
        });
        // Before something that is no address, a client may have written whatever it wants.
        let client =
            addresses.find(|address| address.is_none_or(|address| !self.is_proxy(address)));
        network(client.flatten().unwrap_or(address))
    }
}

/// Whoever has an IPv6 address has 2⁶⁴ of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

impl Client {
    /// The memory for requests as far as this client may take it.
    pub(crate) fn memory(&self, all: &Memory) -> Memory {
        all.for_one(&self.memory)
    }

    /// Waits until a request of this client may be read.
    pub(crate) async fn turn(&self) -> Turn {
        let permit = Arc::clone(&self.reading).acquire_owned().await;
        Turn(permit.expect("this semaphore is never closed"))
    }

    fn is_forgotten(self: &Arc<Client>) -> bool {
        Arc::strong_count(self) == 1 && self.images.is_idle() && self.densities.is_idle()
    }
}

/// While this lives, a request is read.
pub(crate) struct Turn(
    #[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit,
);

impl Turn {
    /// Charges the time of this thread from now until it is dropped, by the same thread.
    pub(crate) fn charging<'a>(&'a self, bucket: &'a Bucket) -> Charging<'a> {
        Charging { _turn: self, bucket, time: Stopwatch::start() }
    }
}

/// Charges a bucket when it is dropped.
pub(crate) struct Charging<'a> {
    _turn: &'a Turn,
    bucket: &'a Bucket,
    time: Stopwatch,
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        self.bucket.take(self.time.seconds());
    }
}

/// Seconds of processors that a client may use.
pub(crate) struct Bucket {
    level: Mutex<Level>,
    /// How many are added in a second, if there is a limit.
    share: Option<f64>,
}

struct Level {
    seconds: f64,
    since: Instant,
    /// Whether its client has owed something, not long ago.
    comes_second: bool,
    /// Jobs in the queue or being worked on, and what they cost together.
    jobs: usize,
    here: f64,
}

/// What a client has of a queue already. Nothing if clients have no shares.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Claim {
    /// In how many seconds a client that has used its share has none of it left to wait for.
    pub(crate) debt_s: f64,
    /// What its jobs cost that wait or are worked on.
    pub(crate) here: f64,
}

impl Level {
    /// What is left now; less than nothing is a debt.
    fn seconds(&self, share: f64, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.since).as_secs_f64();
        (self.seconds + share * since).min(BURST_S * share)
    }
}

impl Bucket {
    pub(crate) fn new(share: Option<f64>) -> Bucket {
        let seconds = BURST_S * share.unwrap_or(1.0);
        let level =
            Level { seconds, since: Instant::now(), comes_second: false, jobs: 0, here: 0.0 };
        Bucket { level: Mutex::new(level), share }
    }

    fn lock(&self) -> MutexGuard<'_, Level> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its client has a share, and no more.
    pub(crate) fn is_limited(&self) -> bool {
        self.share.is_some()
    }

    /// What its client has of the queue.
    pub(crate) fn claim(&self) -> Claim {
        let Some(share) = self.share else { return Claim::default() };
        let level = self.lock();
        let debt_s = -level.seconds(share, Instant::now()) / share;
        Claim { debt_s: debt_s.max(0.0), here: level.here }
    }

    /// Whether its client has so many seconds left, and has not owed something not long ago.
    pub(crate) fn comes_first(&self, seconds: f64) -> bool {
        let Some(share) = self.share else { return true };
        let mut level = self.lock();
        let left = level.seconds(share, Instant::now());
        let least = if level.comes_second { FIRST_AGAIN * BURST_S * share } else { 0.0 };
        level.comes_second = left < least;
        !level.comes_second && left >= seconds
    }

    /// Counts work: what is expected when it is admitted, and the difference when it is done. Returns what was taken, which is less
    /// where the debt would become too large.
    pub(crate) fn take(&self, seconds: f64) -> f64 {
        let Some(share) = self.share else { return 0.0 };
        let mut level = self.lock();
        let now = Instant::now();
        let before = level.seconds(share, now);
        level.seconds = (before - seconds).clamp(-LARGEST_DEBT_S * share, BURST_S * share);
        level.since = now;
        before - level.seconds
    }

    /// A job has come to the queue.
    pub(crate) fn enter(&self, cost: f64) {
        let mut level = self.lock();
        level.jobs += 1;
        level.here += cost;
    }

    /// A job is done that came with this cost.
    pub(crate) fn leave(&self, cost: f64) {
        let mut level = self.lock();
        level.jobs = level.jobs.saturating_sub(1);
        // Sums of rounded numbers don't end at zero by themselves.
        level.here = if level.jobs == 0 { 0.0 } else { (level.here - cost).max(0.0) };
    }

    /// Whether a new one would be like it.
    fn is_idle(&self) -> bool {
        let level = self.lock();
        let in_debt = self.share.is_some_and(|share| level.seconds(share, Instant::now()) < 0.0);
        !in_debt && level.jobs == 0 && level.since.elapsed() > FORGOTTEN
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn clients(settings: &Settings) -> Clients {
        Clients::new(settings, &Memory::new(settings))
    }

    fn peer(address: &str) -> Peer {
        Peer(SocketAddr::new(address.parse().expect("an address"), 9))
    }

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let clients = clients(&Settings::default());
        let none = HeaderMap::new();
        let greedy = clients.of(peer("10.0.0.1"), &none, None);
        assert_eq!(greedy.images.claim(), Claim::default());
        let full = BURST_S * 0.25 * cores();
        let taken = greedy.images.take(1e9);
        assert!((taken - full * (1.0 + LARGEST_DEBT_S / BURST_S)).abs() < 1e-6, "{taken}");
        // Its other connections are the same client, others are not, and densities are other work.
        let again = clients.of(peer("10.0.0.1"), &none, None);
        let debt_s = again.images.claim().debt_s;
        assert!((LARGEST_DEBT_S - 10.0..=LARGEST_DEBT_S).contains(&debt_s), "{debt_s}");
        assert_eq!(clients.of(peer("10.0.0.2"), &none, None).images.claim().debt_s, 0.0);
        assert_eq!(greedy.densities.claim().debt_s, 0.0);
        std::thread::sleep(Duration::from_millis(300));
        assert!(greedy.images.claim().debt_s < debt_s - 0.2);
        // What took less than expected is given back, up to a full bucket.
        greedy.images.take(-1e9);
        assert!(greedy.images.take(0.0).abs() < 1e-6);
        assert!((greedy.images.take(1e9) - taken).abs() < 1e-6);
        let off = Settings { client_share_percent: 100, ..Settings::default() };
        let free = super::Clients::new(&off, &Memory::new(&off)).of(peer("10.0.0.1"), &none, None);
        assert_eq!(free.images.take(1000.0), 0.0);
        free.images.enter(9.0);
        assert_eq!(free.images.claim(), Claim::default());
        assert_eq!(free.reading.available_permits(), Semaphore::MAX_PERMITS);
    }

    #[test]
    fn keys_and_addresses_are_clients() {
        let proxy: IpAddr = "10.9.9.9".parse().expect("an address");
        let settings = Settings { trusted_proxies: vec![proxy], ..Settings::default() };
        let clients = clients(&settings);
        let from_bytes = |address: &str, forwarded: &[&[u8]], key| {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                let value = HeaderValue::from_bytes(value).expect("no control characters");
                headers.append("x-forwarded-for", value);
            }
            clients.of(peer(address), &headers, key)
        };
        let from = |address: &str, forwarded: &[&str], key| {
            let forwarded: Vec<&[u8]> = forwarded.iter().map(|value| value.as_bytes()).collect();
            from_bytes(address, &forwarded, key)
        };
        let same = |a: &Arc<Client>, b: &Arc<Client>| Arc::ptr_eq(a, b);
        let one = from("10.0.0.1", &[], None);
        assert!(same(&one, &from("10.0.0.1", &["10.0.0.2"], None)), "anybody can state an address");
        for stated in ["2.2.2.2, 10.0.0.1", "10.0.0.1:4711", "10.0.0.1, 10.9.9.9"] {
            let forwarded = from("10.9.9.9", &["1.1.1.1", stated], None);
            assert!(same(&one, &forwarded), "{stated}");
        }
        let proxy = from("10.9.9.9", &[], None);
        assert!(same(&proxy, &from("10.9.9.9", &["1.1.1.1, unknown"], None)));
        // What came before something unreadable says nothing, and is not looked at.
        for unreadable in [&b"\xff"[..], b"1.1.1.1, \xff\xfe", "1.1.1.1, 10.0.0.1\u{b5}".as_bytes()]
        {
            let forwarded = from_bytes("10.9.9.9", &[b"1.1.1.1", unreadable], None);
            assert!(same(&proxy, &forwarded), "{unreadable:?}");
        }
        assert!(same(&one, &from_bytes("10.9.9.9", &[b"\xff, 10.0.0.1"], None)));
        assert!(same(&one, &from("::ffff:10.0.0.1", &[], None)));
        assert!(!same(&one, &from("10.9.9.9", &["10.0.0.2"], None)));
        assert!(same(&from("2001:db8::1", &[], None), &from("2001:db8::ffff:2", &[], None)));
        let key = from("10.0.0.1", &[], Some([1; 32]));
        assert!(!same(&one, &key) && same(&key, &from("10.0.0.3", &[], Some([1; 32]))));
    }

    #[test]
    fn clients_without_number_take_no_memory_without_limit() {
        let clients = clients(&Settings::default());
        for number in 0..(2 * MAX_CLIENTS as u32) {
            let address = IpAddr::from(number.to_be_bytes());
            clients.of(Peer(SocketAddr::new(address, 9)), &HeaderMap::new(), None);
        }
        assert!(clients.known.lock().expect("no panic").clients.len() <= MAX_CLIENTS + 1);
    }
}

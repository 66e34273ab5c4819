//! What is measured, one function each.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use locdiff_experiments::cpu_seconds;
use locdiff_server::{Engine, LocateOptions, SentImage, Settings};

use crate::client::{Client, Said};
use crate::server::Server;

/// Enough to keep two workers' batches filled, and one more in the queue.
pub(crate) const CLIENTS: usize = 14;
/// Beside clients that disturb: few enough that none is refused.
pub(crate) const FEW: usize = 8;
/// Clients of the overload: more than can wait at a time.
const CROWD: usize = 300;

/// Images per second of the engine without HTTP.
pub(crate) fn loop_over(
    engine: &Engine,
    images: &[SentImage],
    settings: &Settings,
    time: Duration,
) -> f64 {
    let (done, began) = (AtomicUsize::new(0), Instant::now());
    let batch: Vec<SentImage> =
        (0..settings.max_batch).map(|k| images[k % images.len()].clone()).collect();
    thread::scope(|scope| {
        for _ in 0..settings.workers {
            scope.spawn(|| {
                while began.elapsed() < time {
                    let answers = engine.locate(&batch, &LocateOptions::default());
                    let located = answers
                        .iter()
                        .filter(|a| matches!(a, locdiff_server::Outcome::Answered(_)))
                        .count();
                    done.fetch_add(located, Ordering::Relaxed);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

pub(crate) struct Saturated {
    pub(crate) per_s: f64,
    pub(crate) failed: usize,
    /// Of both processors, in percent.
    pub(crate) client_cpu_share: f64,
}

/// Images per second through HTTP, from clients that ask again as soon as they are answered.
pub(crate) fn saturate(
    server: &Server,
    requests: &[Vec<u8>],
    time: Duration,
    clients: usize,
) -> Result<Saturated> {
    let (done, failed, began, cpu) =
        (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now(), cpu_seconds());
    thread::scope(|scope| {
        for number in 0..clients {
            let (done, failed) = (&done, &failed);
            scope.spawn(move || {
                let mut client = Client::new(server.address);
                for k in number.. {
                    if began.elapsed() >= time {
                        break;
                    }
                    match client.ask(&requests[k % requests.len()]) {
                        Said::Status(200) => {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            // Who is refused waits a little, if not as long as it was told.
                            thread::sleep(Duration::from_millis(50));
                        }
                    }
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let processors = thread::available_parallelism()?.get() as f64;
    Ok(Saturated {
        per_s: done.load(Ordering::Relaxed) as f64 / seconds,
        failed: failed.load(Ordering::Relaxed),
        client_cpu_share: 100.0 * (cpu_seconds() - cpu) / seconds / processors,
    })
}

pub(crate) struct Alone {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// One client, one request after the other.
pub(crate) fn alone(server: &Server, requests: &[Vec<u8>], count: usize) -> Result<Alone> {
    let mut client = Client::new(server.address);
    let mut times = Vec::new();
    for k in 0..count {
        let began = Instant::now();
        let said = client.ask(&requests[k % requests.len()]);
        ensure!(said == Said::Status(200), "alone: {said:?}");
        times.push(ms(began.elapsed()));
    }
    Ok(Alone { p50_ms: quantile(&mut times, 0.5), p99_ms: quantile(&mut times, 0.99) })
}

#[derive(Debug)]
pub(crate) struct Stormy {
    pub(crate) sent: usize,
    pub(crate) accepted: usize,
    pub(crate) refused: usize,
    pub(crate) lost: usize,
    pub(crate) repeated: usize,
    pub(crate) accepted_p50_ms: f64,
    pub(crate) accepted_p99_ms: f64,
    pub(crate) refused_p50_ms: f64,
    pub(crate) refused_p99_ms: f64,
    pub(crate) refused_max_ms: f64,
    pub(crate) early_mb: f64,
    pub(crate) late_mb: f64,
}

/// An answer, and how long it took.
pub(crate) struct Outcome {
    pub(crate) said: Said,
    pub(crate) ms: f64,
}

pub(crate) struct Scheduled {
    pub(crate) outcomes: Vec<Outcome>,
    /// Requests that were sent again.
    pub(crate) repeated: usize,
}

/// So many requests per second on a schedule, whether answers come or not. `before` is called before each.
pub(crate) fn scheduled(
    server: &Server,
    requests: &[Vec<u8>],
    rate: f64,
    time: Duration,
    clients: usize,
    mut before: impl FnMut(usize),
) -> Scheduled {
    let count = (rate * time.as_secs_f64()) as usize;
    let (sender, tickets) = mpsc::channel::<usize>();
    let tickets = Mutex::new(tickets);
    let outcomes = Mutex::new(Vec::with_capacity(count));
    let repeated = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::new(server.address);
                loop {
                    let ticket = tickets.lock().expect("no panic").recv();
                    let Ok(ticket) = ticket else { break };
                    let began = Instant::now();
                    let said = client.ask(&requests[ticket % requests.len()]);
                    let outcome = Outcome { said, ms: ms(began.elapsed()) };
                    outcomes.lock().expect("no panic").push(outcome);
                }
                repeated.fetch_add(client.repeated, Ordering::Relaxed);
            });
        }
        let began = Instant::now();
        for ticket in 0..count {
            let due = Duration::from_secs_f64(ticket as f64 / rate);
            thread::sleep(due.saturating_sub(began.elapsed()));
            before(ticket);
            let _ = sender.send(ticket);
        }
        drop(sender);
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    Scheduled { outcomes, repeated: repeated.into_inner() }
}

/// More requests than can be answered.
pub(crate) fn overload(
    server: &Server,
    requests: &[Vec<u8>],
    rate: f64,
    time: Duration,
) -> Result<Stormy> {
    let mut memory = Vec::new();
    let sample = |ticket: usize| {
        if ticket.is_multiple_of((rate as usize).max(1)) {
            memory.push(server.resident_mb());
        }
    };
    let Scheduled { outcomes, repeated } = scheduled(server, requests, rate, time, CROWD, sample);
    let times = |status: u16| -> Vec<f64> {
        let such = outcomes.iter().filter(|outcome| outcome.said == Said::Status(status));
        such.map(|outcome| outcome.ms).collect()
    };
    let (mut accepted, mut refused) = (times(200), times(429));
    Ok(Stormy {
        sent: outcomes.len(),
        accepted: accepted.len(),
        refused: refused.len(),
        lost: outcomes.len() - accepted.len() - refused.len(),
        repeated,
        accepted_p50_ms: quantile(&mut accepted, 0.5),
        accepted_p99_ms: quantile(&mut accepted, 0.99),
        refused_p50_ms: quantile(&mut refused, 0.5),
        refused_p99_ms: quantile(&mut refused, 0.99),
        refused_max_ms: quantile(&mut refused, 1.0),
        early_mb: memory[memory.len() / 3],
        late_mb: *memory.last().expect("one second or more"),
    })
}

/// Throughput beside a client that sends a byte a second, clients that vanish, and a thousand idle ones.
pub(crate) fn disturbed(
    server: &Server,
    requests: &[Vec<u8>],
    time: Duration,
) -> Result<Saturated> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let Ok(mut slow) = TcpStream::connect(server.address) else { return };
            let (head, body) = requests[0].split_at(
                requests[0].windows(4).position(|w| w == b"\r\n\r\n").map_or(0, |at| at + 4),
            );
            let _ = slow.write_all(head);
            for byte in body.chunks(1) {
                if stop.load(Ordering::Relaxed) || slow.write_all(byte).is_err() {
                    return;
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if let Ok(mut leaving) = TcpStream::connect(server.address) {
                    let _ = leaving.write_all(&requests[0][..requests[0].len() / 2]);
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        let idle: Vec<TcpStream> =
            (0..1000).filter_map(|_| TcpStream::connect(server.address).ok()).collect();
        let saturated = saturate(server, requests, time, FEW);
        stop.store(true, Ordering::Relaxed);
        ensure!(idle.len() == 1000, "only {} idle connections", idle.len());
        saturated
    })
}

pub(crate) struct Stopped {
    pub(crate) sent: usize,
    pub(crate) answered: usize,
    pub(crate) lost: usize,
    pub(crate) exit_code: Option<i32>,
}

/// SIGTERM while clients ask, each request on a connection of its own.
pub(crate) fn stop_under_load(server: Server, requests: &[Vec<u8>]) -> Result<Stopped> {
    let (address, counts) = (server.address, Mutex::new([0; 3]));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let counts = &counts;
            scope.spawn(move || {
                let mut client = Client::new(address);
                for k in number.. {
                    let said = client.ask_anew(&requests[k % requests.len()]);
                    let mut counts = counts.lock().expect("no panic");
                    match said {
                        Said::NotConnected => return,
                        Said::Status(200 | 429 | 503) => counts[1] += 1,
                        Said::Status(_) | Said::Nothing => counts[2] += 1,
                    }
                    counts[0] += 1;
                    drop(counts);
                    if said != Said::Status(200) {
                        thread::sleep(Duration::from_millis(20));
                    }
                }
            });
        }
        thread::sleep(Duration::from_secs(2));
        server.terminate()
    })?;
    let [sent, answered, lost] = counts.into_inner().expect("no panic");
    Ok(Stopped { sent, answered, lost, exit_code: server.wait()? })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let index = (share * times.len() as f64).ceil() as usize;
    times.get(index.clamp(1, times.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

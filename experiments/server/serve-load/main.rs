//! How does `locdiff serve` hold under load?
//!
//! 1. Throughput: the engine called in a loop in this process (the server's own batches and number of threads), and
//!    the same images through HTTP on loopback from enough clients to keep the queue filled; in turns, so that both meet the same
//!    machine. Both decode the images. The clients share the two cores with the server; what they cost is stated.
//! 2. One client alone: the uncontended time of a request.
//! 3. Four times more requests than it can answer, for a minute, on a fixed schedule that doesn't wait for answers.
//! 4. A client that sends a byte a second, clients that go away in the middle, and a thousand idle connections:
//!    throughput beside them.
//! 5. Honest images and densities for a minute, alone and then beside four densities per second that are meant to cost much.
//! 6. SIGTERM under load: every request that was sent before is answered; exit code 0.

mod client;
mod hostile;
mod phases;
mod server;

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use locdiff_experiments::{keep_freed_memory, round};
use locdiff_server::{Engine, SentImage, Settings};
use serde_json::json;

use server::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OVERLOAD: f64 = 4.0;
/// Of honest images beside hostile densities, of what can be answered.
const HONEST: f64 = 0.5;

fn main() -> Result<()> {
    keep_freed_memory();
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (turns, turn, overload) = if quick { (2, 3, 12) } else { (6, 8, 60) };
    let turn = Duration::from_secs(turn);
    let images: Vec<Vec<u8>> = ["madagascar", "sinai"]
        .iter()
        .map(|name| fs::read(format!("examples/{name}.jpg")))
        .collect::<Result<_, _>>()?;
    let settings = Settings { models: vec!["earth-view".to_owned()], ..Settings::default() };
    let engine = Engine::open(&settings)?;
    let sent: Vec<SentImage> =
        images.iter().map(|bytes| SentImage { name: None, bytes: bytes.clone().into() }).collect();
    let server = Server::start(&[])?;
    let requests = images
        .iter()
        .map(|image| client::request("/v1/locate", "image/jpeg", image))
        .collect::<Vec<_>>();

    // In turns; a first of each warms up.
    phases::loop_over(&engine, &sent, &settings, Duration::from_secs(1));
    phases::saturate(&server, &requests, Duration::from_secs(1), phases::CLIENTS)?;
    let (mut by_loop, mut by_http, mut cpu_share) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        by_loop.push(phases::loop_over(&engine, &sent, &settings, turn));
        let saturated = phases::saturate(&server, &requests, turn, phases::CLIENTS)?;
        by_http.push(saturated.per_s);
        cpu_share.push(saturated.client_cpu_share);
    }
    let (engine_per_s, http_per_s, client_share) =
        (mean(&by_loop), mean(&by_http), mean(&cpu_share));
    let alone = phases::alone(&server, &requests, if quick { 5 } else { 40 })?;
    eprintln!(
        "engine {engine_per_s:.1}/s, HTTP {http_per_s:.1}/s, alone p99 {:.1} ms",
        alone.p99_ms
    );

    let rate = OVERLOAD * http_per_s;
    let stormy = phases::overload(&server, &requests, rate, Duration::from_secs(overload))?;
    eprintln!("overload: {stormy:?}");
    let undisturbed = phases::saturate(&server, &requests, turn, phases::FEW)?.per_s;
    let disturbed = phases::disturbed(&server, &requests, turn * 2)?;
    let undisturbed =
        0.5 * (undisturbed + phases::saturate(&server, &requests, turn, phases::FEW)?.per_s);
    let beside_time = Duration::from_secs(if quick { 6 } else { 60 });
    let (hostile, honest_rate) = (hostile::hostile()?, HONEST * http_per_s);
    let quiet = hostile::beside(&server, &requests, honest_rate, &[], beside_time)?;
    let beside = hostile::beside(&server, &requests, honest_rate, &hostile, beside_time)?;
    eprintln!("quiet: {quiet:?}\nbeside hostile densities: {beside:?}");
    let images_rejected = beside.images.rejected.saturating_sub(quiet.images.rejected);
    let densities_rejected = beside.densities.rejected;
    let timeouts: usize = [&quiet, &beside]
        .iter()
        .flat_map(|run| [&run.images, &run.densities, &run.hostile])
        .map(|tally| tally.timeouts)
        .sum();
    let stopped = phases::stop_under_load(server, &requests)?;
    ensure!(stopped.exit_code == Some(0), "exit code {:?} after SIGTERM", stopped.exit_code);

    let limit_ms = settings.max_wait_ms as f64;
    let allowed_ms = 2.0 * alone.p99_ms + limit_ms;
    let rows = [
        ("images per second, engine in a loop", format!("{engine_per_s:.1}")),
        ("images per second through HTTP, saturated", format!("{http_per_s:.1}")),
        ("HTTP / engine", format!("{:.3}", http_per_s / engine_per_s)),
        ("the clients' own share of the processors meanwhile", format!("{client_share:.1} %")),
        ("one client alone: median, p99", format!("{:.1}, {:.1} ms", alone.p50_ms, alone.p99_ms)),
        ("overload: requests per second, for", format!("{rate:.0}, {overload} s")),
        (
            "requests, accepted, refused",
            format!("{}, {}, {}", stormy.sent, stormy.accepted, stormy.refused),
        ),
        ("accepted per second", format!("{:.1}", stormy.accepted as f64 / overload as f64)),
        (
            "accepted: median, p99",
            format!("{:.0}, {:.0} ms", stormy.accepted_p50_ms, stormy.accepted_p99_ms),
        ),
        ("allowed: 2 × p99 alone + the queue's limit", format!("{allowed_ms:.0} ms")),
        (
            "refused: median, p99, slowest",
            format!(
                "{:.1}, {:.1}, {:.1} ms",
                stormy.refused_p50_ms, stormy.refused_p99_ms, stormy.refused_max_ms
            ),
        ),
        ("lost in the overload (no answer at all)", stormy.lost.to_string()),
        (
            "sent again, because an idle connection or a refused body had closed the connection",
            stormy.repeated.to_string(),
        ),
        (
            "memory of the server at the first third, at the end",
            format!("{:.0}, {:.0} MB", stormy.early_mb, stormy.late_mb),
        ),
        (
            "throughput beside slow, vanishing and 1,000 idle clients / without",
            format!("{:.3}", disturbed.per_s / undisturbed),
        ),
        ("refused or lost beside them", disturbed.failed.to_string()),
        (
            "honest images and densities per second beside hostile densities, for",
            format!(
                "{honest_rate:.1}, {:.0}, {} s",
                hostile::DENSITIES_PER_S,
                beside_time.as_secs()
            ),
        ),
        ("honest images, alone: sent, answered, rejected, median, p99", told(&quiet.images)),
        ("honest densities, alone", told(&quiet.densities)),
        ("honest images beside 4 hostile densities per second", told(&beside.images)),
        ("honest densities beside them", told(&beside.densities)),
        ("hostile densities", told(&beside.hostile)),
        ("accepted, and not answered in time, of all kinds", timeouts.to_string()),
        (
            "memory of the server, alone, beside hostile densities",
            format!("{:.0}, {:.0} MB", quiet.memory_mb, beside.memory_mb),
        ),
        (
            "SIGTERM under load: requests sent before, answered, lost",
            format!("{}, {}, {}", stopped.sent, stopped.answered, stopped.lost),
        ),
        ("exit code", format!("{:?}", stopped.exit_code.unwrap_or(-1))),
    ];
    let mut table = String::from("| | |\n|---|---|\n");
    for (name, value) in rows {
        table.push_str(&format!("| {name} | {value} |\n"));
    }
    println!("{table}");
    let figures = json!({
        "http_over_engine": round(http_per_s / engine_per_s),
        "refused_p99_ms": round(stormy.refused_p99_ms),
        "accepted_p99_ms": round(stormy.accepted_p99_ms),
        "lost": stormy.lost + stopped.lost,
        "accepted_p99_allowed_ms": round(allowed_ms),
        "alone_p99_ms": round(alone.p99_ms),
        "client_cpu_share": round(client_share),
        "memory_early_mb": round(stormy.early_mb),
        "memory_late_mb": round(stormy.late_mb),
        "disturbed_over_undisturbed": round(disturbed.per_s / undisturbed),
        "honest_images_rejected": images_rejected,
        "honest_density_rejected": densities_rejected,
        "accepted_timeouts": timeouts,
        "n": stormy.sent,
    });
    if !quick {
        let about = include_str!("about.md");
        fs::write(
            "experiments/server/serve-load/result.md",
            format!("{about}\n{table}\n```json\n{figures}\n```\n"),
        )?;
    }
    println!("{figures}");
    ensure!(http_per_s >= 0.9 * engine_per_s, "HTTP costs more than a tenth");
    ensure!(stormy.refused_p99_ms < 50.0, "refusals take too long");
    ensure!(stormy.accepted_p99_ms <= allowed_ms, "accepted requests take too long");
    ensure!(stormy.lost + stopped.lost == 0, "requests were lost");
    ensure!(images_rejected == 0, "hostile densities make honest images be rejected");
    ensure!(densities_rejected == 0, "hostile densities make honest densities be rejected");
    ensure!(timeouts == 0, "accepted requests were not answered in time");
    Ok(())
}

fn told(tally: &hostile::Tally) -> String {
    let hostile::Tally { sent, answered, rejected, p50_ms, p99_ms, .. } = tally;
    format!("{sent}, {answered}, {rejected}, {p50_ms:.0}, {p99_ms:.0} ms")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

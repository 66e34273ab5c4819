use std::sync::Arc;
use std::thread;

use super::*;

/// A number, for telling jobs apart, and its cost.
struct Numbered(i32, f64, Arc<Bucket>);

impl Job for Numbered {
    fn cost(&self) -> f64 {
        self.1
    }

    fn bucket(&self) -> &Arc<Bucket> {
        &self.2
    }
}

fn unlimited() -> Arc<Bucket> {
    Arc::new(Bucket::new(None))
}

fn of_client(numbers: std::ops::Range<i32>, bucket: &Arc<Bucket>) -> Vec<Numbered> {
    numbers.map(|number| Numbered(number, 1.0, Arc::clone(bucket))).collect()
}

fn images(numbers: std::ops::Range<i32>) -> Vec<Numbered> {
    of_client(numbers, &unlimited())
}

fn numbers(batch: Batch<'_, Numbered>) -> Vec<i32> {
    batch.jobs.iter().map(|job| job.0).collect()
}

fn limits() -> Limits {
    Limits {
        max_batch: 4,
        delay: Duration::from_millis(200),
        workers: 1,
        max_queue: 10,
        max_wait: Duration::from_secs(1),
        company: 4.0,
        first_guess: 0.03,
        slowest: f64::INFINITY,
        long: f64::INFINITY,
    }
}

fn of_densities() -> Limits {
    Limits { max_batch: 1, company: PATIENCE, first_guess: 1.0, slowest: 3.0, ..limits() }
}

#[test]
fn a_batch_is_what_waits_and_not_more_than_fits() {
    let queue = Queue::new(limits());
    queue.admit(images(0..6)).expect("room");
    assert_eq!(numbers(queue.take().expect("a batch")), [0, 1, 2, 3]);
    assert_eq!(numbers(queue.take().expect("a batch")), [4, 5]);
    queue.close();
    assert!(queue.take().is_none());
    assert_eq!(queue.admit(images(7..8)), Err(Refusal::Closed));
}

#[test]
fn a_single_job_waits_for_company_only_if_some_is_coming() {
    let queue = Queue::new(limits());
    queue.admit(images(1..2)).expect("room");
    let began = Instant::now();
    drop(queue.take());
    assert!(began.elapsed() < Duration::from_millis(100));
    let receiving = queue.receiving();
    queue.admit(images(1..2)).expect("room");
    let began = Instant::now();
    drop(queue.take());
    assert!(began.elapsed() >= Duration::from_millis(190));
    drop(receiving);
}

#[test]
fn what_would_wait_too_long_is_refused() {
    let queue = Queue::new(limits());
    queue.admit(images(0..8)).expect("room");
    assert!(matches!(queue.admit(images(8..11)), Err(Refusal::Full { .. })));
    // As if images took ten seconds each.
    queue.lock().seconds_per_cost = 10.0;
    match queue.would_admit(1.0, &unlimited()) {
        Err(Refusal::Full { seconds }) => assert_eq!(seconds, 130.0),
        other => panic!("{other:?}"),
    }
    // Idle workers take anything.
    drop(queue.take());
    drop(queue.take());
    assert_eq!(queue.would_admit(1.0, &unlimited()), Ok(()));
}

#[test]
fn cheap_jobs_overtake_costly_ones_and_are_not_refused_because_of_them() {
    let queue = Queue::new(of_densities());
    for number in 0..2 {
        queue.admit(vec![Numbered(number, 0.1, unlimited())]).expect("room");
    }
    assert!(matches!(queue.would_admit(0.2, &unlimited()), Err(Refusal::Full { .. })));
    queue.admit(vec![Numbered(2, 0.01, unlimited())]).expect("ahead of the others");
    assert_eq!(numbers(queue.take().expect("the cheap one")), [2]);
    // Not for ever: what is due goes first.
    queue.lock().waiting[0].due = Instant::now();
    queue.admit(vec![Numbered(3, 0.01, unlimited())]).expect("room");
    assert_eq!(numbers(queue.take().expect("the first")), [0]);
    assert_eq!(numbers(queue.take().expect("the next")), [3]);
}

fn with_share<const CLIENTS: usize>(share: f64) -> [Arc<Bucket>; CLIENTS] {
    [(); CLIENTS].map(|()| Arc::new(Bucket::new(Some(share))))
}

#[test]
fn who_used_its_share_is_rejected_before_others() {
    let queue = Queue::new(Limits { max_queue: 16, ..limits() });
    let [greedy, honest] = with_share(0.5);
    greedy.take(100.0);
    let debt_s = greedy.claim().debt_s;
    // Alone, it may use everything.
    queue.admit(of_client(0..4, &greedy)).expect("alone");
    queue.admit(of_client(4..8, &greedy)).expect("alone");
    assert!(matches!(queue.would_admit(1.0, &greedy), Err(Refusal::Full { .. })), "half");
    // Even if images take ten seconds each, others are not rejected because of it, and come before the rest.
    queue.lock().seconds_per_cost = 10.0;
    queue.admit(of_client(8..9, &honest)).expect("first");
    let refusal = queue.admit(of_client(9..10, &greedy));
    assert!(matches!(refusal, Err(Refusal::Share { .. })), "{refusal:?}");
    assert!(matches!(queue.would_admit(1.0, &greedy), Err(Refusal::Share { .. })));
    assert_eq!(numbers(queue.take().expect("a batch")), [0, 8, 1, 2]);
    // What was expected is charged at once, and corrected by what it took: next to nothing here.
    drop((queue.take(), queue.take()));
    assert_eq!(honest.claim().debt_s, 0.0);
    assert!(greedy.claim().debt_s - debt_s < 1.0);
}

#[test]
fn many_jobs_of_one_client_are_no_reason_to_reject_another() {
    let queue = Queue::new(Limits { max_queue: 20, ..limits() });
    // Shares so large that nobody is in debt.
    let [flood, newcomer, third] = with_share(1e6);
    queue.admit(of_client(0..4, &flood)).expect("idle");
    let working = queue.take().expect("a batch");
    queue.admit(of_client(4..8, &flood)).expect("room");
    queue.admit(of_client(8..12, &flood)).expect("room");
    queue.lock().seconds_per_cost = 0.1;
    assert!(matches!(queue.would_admit(1.0, &flood), Err(Refusal::Full { .. })));
    queue.admit(of_client(20..21, &newcomer)).expect("the flood claims more");
    queue.admit(of_client(21..22, &newcomer)).expect("also its second request");
    queue.admit(of_client(30..31, &third)).expect("so does the newcomer");
    // It comes first, too, and of what it has here the last comes after the third's.
    assert_eq!(numbers(queue.take().expect("a batch")), [20, 30, 21, 4]);
    drop(working);
    while queue.waiting() > 0 {
        drop(queue.take());
    }
    assert_eq!([&flood, &newcomer, &third].map(|bucket| bucket.claim().here), [0.0; 3]);
    assert!(queue.lock().working.is_empty());
    // However fast its jobs are done, it leaves half of the queue.
    queue.lock().seconds_per_cost = 0.0;
    queue.admit(of_client(0..10, &flood)).expect("half");
    assert!(matches!(queue.would_admit(1.0, &flood), Err(Refusal::Full { .. })));
    queue.admit(of_client(10..20, &newcomer)).expect("the other half");
}

#[test]
fn parts_of_a_form_take_turns_with_others_but_not_for_ever() {
    let queue = Queue::new(Limits { max_queue: 40, ..limits() });
    let [form, single, late] = with_share(1e6);
    queue.admit(of_client(0..6, &form)).expect("idle");
    queue.admit(of_client(20..21, &single)).expect("small");
    assert_eq!(numbers(queue.take().expect("a batch")), [0, 20, 1, 2]);
    // What is here longer than others may overtake goes first, however much its client has here.
    for waiting in &mut queue.lock().waiting {
        waiting.due -= BEHIND + Duration::from_secs(5);
    }
    queue.admit(of_client(30..31, &late)).expect("small");
    assert_eq!(numbers(queue.take().expect("a batch")), [3, 4, 5, 30]);
}

#[test]
fn an_idle_server_takes_more_than_half_of_a_queue_from_one_client() {
    let queue = Queue::new(limits());
    let [greedy] = with_share(0.5);
    greedy.take(100.0);
    queue.admit(of_client(0..9, &greedy)).expect("idle");
}

#[test]
fn a_small_debt_comes_before_a_large_one() {
    let queue = Queue::new(limits());
    let [small, large] = with_share(0.5);
    small.take(12.0);
    large.take(100.0);
    queue.admit(of_client(0..4, &large)).expect("alone");
    let working = queue.take().expect("a batch");
    queue.admit(of_client(4..8, &large)).expect("alone");
    assert!(small.claim().debt_s > 0.0 && small.claim().debt_s + 20.0 < large.claim().debt_s);
    // As if images took ten seconds each.
    queue.lock().seconds_per_cost = 10.0;
    queue.admit(of_client(8..9, &small)).expect("the other owes more");
    let refusal = queue.would_admit(1.0, &large);
    assert!(matches!(refusal, Err(Refusal::Share { .. })), "{refusal:?}");
    drop(working);
}

#[test]
fn nobody_gets_back_more_than_was_charged() {
    let queue = Queue::new(limits());
    let [bucket] = with_share(0.5);
    bucket.take(1e9);
    let (began, debt_s) = (Instant::now(), bucket.claim().debt_s);
    for number in 0..50 {
        // As if images took ten seconds each: much more is expected than it will take.
        queue.lock().seconds_per_cost = 10.0;
        queue.admit(of_client(number..number + 1, &bucket)).expect("alone");
        drop(queue.take());
    }
    let found_s = bucket.claim().debt_s;
    let least_s = debt_s - began.elapsed().as_secs_f64();
    assert!(found_s >= least_s - 1e-6, "{found_s} s, and time alone gives {least_s} s");
}

#[test]
fn what_was_worked_is_billed_by_cost() {
    let queue = Queue::new(limits());
    let [light, heavy] = with_share(0.5);
    // Debts show what is taken.
    light.take(12.0);
    heavy.take(12.0);
    queue.admit(vec![Numbered(0, 3.0, Arc::clone(&heavy))]).expect("idle");
    queue.admit(vec![Numbered(1, 1.0, Arc::clone(&light))]).expect("room");
    let before_s = heavy.claim().debt_s - light.claim().debt_s;
    let mut batch = queue.take().expect("both");
    assert_eq!(batch.jobs.len(), 2);
    batch.worked(0.1);
    batch.worked(0.1);
    drop(batch);
    // They were charged by their costs before. Three quarters and a quarter, at half a second in a second.
    let more_s = heavy.claim().debt_s - light.claim().debt_s - before_s;
    let charged_s = (3.0 - 1.0) / 0.5;
    assert!((more_s + charged_s - 0.2).abs() < 0.05, "{more_s} s more");
}

#[test]
fn time_is_learned_only_from_what_was_done() {
    let queue = Queue::new(of_densities());
    let take = |cost: f64, is_typical: bool| {
        queue.admit(vec![Numbered(0, cost, unlimited())]).expect("idle");
        let mut batch = queue.take().expect("a job");
        batch.is_typical = is_typical;
        thread::sleep(Duration::from_millis(5));
        drop(batch);
        queue.lock().seconds_per_cost
    };
    assert_eq!(take(1.0, false), 1.0);
    assert_eq!(take(0.0, true), 1.0);
    // A thousand times slower than expected counts as three times.
    assert_eq!(take(5e-6, true), 1.4);
    assert!(take(1.0, true) < 1.4);
    assert!(queue.lock().working.is_empty());
}

#[test]
fn every_admitted_job_is_handed_out_once() {
    let queue = Arc::new(Queue::new(Limits { workers: 3, max_queue: 1000, ..limits() }));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut seen = Vec::new();
                while let Some(batch) = queue.take() {
                    seen.extend(numbers(batch));
                }
                seen
            })
        })
        .collect();
    let mut admitted = Vec::new();
    for job in 0..500 {
        if queue.admit(images(job..job + 1)).is_ok() {
            admitted.push(job);
        }
    }
    queue.close();
    let mut seen: Vec<i32> =
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect();
    seen.sort_unstable();
    assert_eq!(seen, admitted);
}

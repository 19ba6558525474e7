use std::collections::HashMap;
#[inline(never)]
fn leaf(n: u64) -> u64 { (0..n).fold(0u64, |s, i| s.wrapping_add(std::hint::black_box(i) * i % 7)) }
trait Job { fn run(&self, n: u64) -> u64; }
struct Counter { map: HashMap<u64, u64> }
impl Job for Counter {
    #[inline(never)]
    fn run(&self, n: u64) -> u64 { (0..n).filter_map(|i| self.map.get(&(i % 5000))).sum() }
}
fn main() {
    let job: Box<dyn Job> = Box::new(Counter { map: (0..4000).map(|i| (i, i * i)).collect() });
    let threads: Vec<_> = (0..2).map(|k| std::thread::Builder::new().name(format!("worker {k}")).spawn(move || (0..10).map(|_| leaf(5_000_000)).sum::<u64>()).unwrap()).collect();
    let mut s = 0u64;
    for _ in 0..10 { s = s.wrapping_add(job.run(500_000)); }
    for t in threads { s = s.wrapping_add(t.join().unwrap()); }
    println!("{s}");
}

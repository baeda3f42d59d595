//! The cost of exchanging a random map, for the rank that sends most, by the number of ranks: 2^20 elements of 8
//! bytes on each rank; messages, bytes, and memory in addition to the map and the elements. `cargo run -p
//! fieldstone-array --example exchange_model`

use fieldstone_array::distributed::plan::model::ExchangeCase;

fn main() {
    println!(
        "| ranks | aggregators | rounds | messages, first | messages, later | MiB sent, first | MiB sent, later | sent / own | \
         MiB held, first | MiB held, later |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for power in 0..=12 {
        let ranks = 1usize << power;
        for aggregators in [Some(ranks), (ranks >= 256).then_some(ranks / 16)].into_iter().flatten() {
            let elements = (ranks as u64) << 20;
            let case = ExchangeCase { ranks, aggregators, elements, size: 8, buffer: 64 << 20 };
            let (first, later) = (case.first_write(), case.later_write());
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            println!(
                "| {ranks} | {aggregators} | {} | {} | {} | {:.2} | {:.2} | {:.4} | {:.1} | {:.1} |",
                later.rounds,
                first.messages,
                later.messages,
                mib(first.sent),
                mib(later.sent),
                later.sent as f64 / f64::from(8 << 20),
                mib(first.memory),
                mib(later.memory)
            );
        }
    }
}

//! What an exchange of a random map costs the rank that sends most, by the number of ranks: 2^20 elements of 8 bytes a rank.
//! `cargo run -p fieldstone-array --example exchange_model`

use fieldstone_array::distributed::plan::model::ExchangeCase;

fn main() {
    println!(
        "| ranks | owners | rounds | messages, first | messages, later | MiB, first | MiB, later | sent / own |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for power in 0..=12 {
        let ranks = 1usize << power;
        for owners in [ranks, ranks.div_ceil(16)] {
            if owners == ranks || ranks >= 256 {
                let elements = (ranks as u64) << 20;
                let case = ExchangeCase { ranks, owners, elements, size: 8, buffer: 64 << 20 };
                let (first, later) = (case.first_write(), case.later_write());
                let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
                println!(
                    "| {ranks} | {owners} | {} | {} | {} | {:.2} | {:.2} | {:.4} |",
                    later.rounds,
                    first.messages,
                    later.messages,
                    mib(first.sent),
                    mib(later.sent),
                    later.sent as f64 / f64::from(8 << 20)
                );
            }
        }
    }
}

//! Reads every object of a container, as each rank of a job does that needs all of it: the measurement of the paper's
//! Table 2 for a header in blocks, compared with a header in one piece.
//!
//! ```text
//! cargo run --release -p fieldstone-array --example reading -- made.nc
//! ```
//!
//! Prints one line of JSON: seconds from the call of open to the last object, the number of objects, and bytes of
//! their names, which show that each was decoded.

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::Object;
use fieldstone_array::container::file::{Container, Mode};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;

fn main() -> Result<(), Box<dyn StdError>> {
    let path = std::env::args().nth(1).ok_or("name a container")?;
    let env = Env::real();
    let start = env.clock.monotonic();
    let comm = Arc::new(SingleComm::new(env.disk.clone()));
    let container = Container::open(Path::new(&path), Mode::Read, comm, &env)?;
    let (mut objects, mut bytes) = (0_u64, 0);
    container.metadata()?.each(&mut |object| {
        objects += 1;
        bytes += match object {
            Object::Dim(name) | Object::Attr(name) => name.len(),
            Object::Var(var) => var.name.len() + var.dims.iter().map(|dim| dim.name.len()).sum::<usize>(),
        };
        Ok(())
    })?;
    let seconds = (env.clock.monotonic() - start) as f64 / 1e9;
    container.close()?;
    println!("{{\"seconds\": {seconds:.6}, \"objects\": {objects}, \"bytes\": {bytes}}}");
    Ok(())
}

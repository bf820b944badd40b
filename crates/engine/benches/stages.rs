//! Benchmarks of the stages of a request other than the model, on the inputs of `benches/inputs`
//! and the embedded model's folder: parse, encode, and decode with write.
//! `cargo bench -p svc-engine --features criterion` prints them after their results have been
//! checked.

mod case;

use std::error::Error;
use std::hint::black_box;

use case::Case;
use criterion::Criterion;

fn main() -> Result<(), Box<dyn Error>> {
    let tokenizer = case::tokenizer()?;
    let mut criterion = Criterion::default().configure_from_args();
    for case in Case::all()? {
        let mut group = criterion.benchmark_group(&case.name);
        group.bench_function("parse", |bencher| bencher.iter(|| black_box(&case).parse()));
        group.bench_function("encode", |bencher| {
            bencher.iter(|| black_box(&case).encode(&tokenizer));
        });
        group.bench_function("decode and write", |bencher| {
            bencher.iter(|| black_box(&case).decode_and_write());
        });
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}

//! Every stage of `stages.rs` once, for callgrind to count its instructions: `node scripts/instructions.mjs` runs it.
//! The first line says what the counts belong to beside the compiler, each further one names what is counted next.

mod case;

use std::error::Error;
use std::hint::black_box;

use case::Case;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", target());
    for case in Case::all()? {
        // What libraries make on their first use is not counted, and is not the same everywhere.
        let tokenizer = case::tokenizer()?;
        case.parse()?;
        case.decode_and_write();
        count(&case, "parse", || case.parse());
        count(&case, "encode, words new", || case.encode(&tokenizer));
        count(&case, "encode, words known", || case.encode(&tokenizer));
        count(&case, "decode and write", || case.decode_and_write());
    }
    Ok(())
}

fn count<T>(case: &Case, stage: &str, work: impl FnOnce() -> T) {
    println!("{} {stage}", case.name);
    start();
    counted(work);
}

/// Callgrind counts from a call of this to the next return of [`counted`]; neither must become part of its caller.
#[inline(never)]
fn start() {
    black_box(());
}

#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) {
    drop(black_box(black_box(work)()));
}

/// The machine that instructions are counted for. Libraries choose other loops where there are wider registers.
fn target() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{arch} {os}{}", wide_registers())
}

#[cfg(target_arch = "x86_64")]
fn wide_registers() -> &'static str {
    if cfg!(target_feature = "avx2") {
        ", avx2 built in"
    } else if std::arch::is_x86_feature_detected!("avx2") {
        ", avx2"
    } else {
        ""
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn wide_registers() -> &'static str {
    ""
}

/// Stands in for the system's function of this name, from which hash maps have their seeds: with seeds that differ, they
/// collide differently in every run. The standard library looks for this symbol for that purpose.
///
/// # Safety
/// As the system's: `buffer` has room for `length` bytes.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller promises the room.
    unsafe { buffer.write_bytes(0x5e, length) };
    length.cast_signed()
}

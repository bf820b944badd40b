//! Runs every stage of `stages.rs` once, for callgrind to count its instructions;
//! `node scripts/instructions.mjs` runs it. The first line of the output names what the counts
//! depend
//! on besides the compiler, and each further line names the stage that is counted next.

mod case;

use std::error::Error;
use std::hint::black_box;

use case::Case;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", target());
    for case in Case::all()? {
        // The work that libraries do on their first use is not counted, and differs between
        // machines.
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

/// Starts the counting: callgrind counts from a call of this function to the next return of
/// [`counted`]; neither may be inlined into its caller.
#[inline(never)]
fn start() {
    black_box(());
}

#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) {
    drop(black_box(black_box(work)()));
}

/// Returns the machine that the counts are valid for. Libraries choose other loops where there are
/// wider registers.
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

/// Replaces the system's function of this name, from which hash maps get their seeds: with
/// different seeds they would collide differently in every run. The standard library looks for this
/// symbol for that purpose.
///
/// # Safety
/// As for the system's function, `buffer` must have room for `length` bytes.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller promises that `buffer` has room for `length` bytes.
    unsafe { buffer.write_bytes(0x5e, length) };
    length.cast_signed()
}

//! Panics of libraries that were given bytes from outside, turned into errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught and reported as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or the first line of its panic. Such a panic is not printed: the
/// caller reports what is wrong.
///
/// # Errors
/// The first line of the panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                loud(panic);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    result.map_err(|panic| first_line(panic.as_ref()))
}

fn first_line(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let line = text.and_then(|text| text.lines().next());
    line.unwrap_or("it cannot be read").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_first_line() {
        assert_eq!(caught(|| 7), Ok(7));
        let panicked = caught(|| -> u8 { panic!("line {}\nmore", 1) });
        assert_eq!(panicked, Err("line 1".to_owned()));
        assert!(!IS_CAUGHT.get());
    }
}

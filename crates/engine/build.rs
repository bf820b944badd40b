//! Links the addon the way Node.js expects on each platform.

fn main() {
    napi_build::setup();
}

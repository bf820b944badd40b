//! Links the addon the way Node.js expects on each platform, and has its types written down.

fn main() {
    napi_build::setup();
    // The macros of napi-derive write what they export into this folder, of which
    // `scripts/addon-types.mjs` makes the types of TypeScript.
    if let Ok(folder) = std::env::var("OUT_DIR") {
        println!("cargo::rustc-env=NAPI_TYPE_DEF_TMP_FOLDER={folder}");
    }
}

//! Pages in a browser, where one is installed.

use std::path::PathBuf;
use std::process::Command;

use crate::common::Folder;

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|p| [p.join("chromium"), p.join("chromium-browser"), p.join("google-chrome")]);
    found.into_iter().find(|p| p.is_file())
}

/// What stands before the script of a visit: `check` notes what does not hold.
const BEFORE: &str = r#"<script type="module">
const said = [];
addEventListener("error", (e) => { said.push("error: " + e.message); });
const check = (what, holds) => { if (!holds) said.push(what); };
const pause = () => new Promise((done) => setTimeout(done, 50));
// Read, laid out, and its own script done.
const opened = (document.body.offsetHeight, performance.now());
"#;

/// What stands after it: the title says how it went.
const AFTER: &str = r#"
check("it is not wider than the window: " + document.documentElement.scrollWidth + " of " + innerWidth, document.documentElement.scrollWidth <= innerWidth);
document.title = said.length ? "wrong: " + said.join("; ") : "visited in " + opened;
</script>"#;

/// Opens a page wide and narrow, and runs a script of a module in it that uses it as a person would. Nothing may be wrong, and nothing be said in the console.
/// Returns the milliseconds in which it was open, as far as there is a browser.
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
pub fn visit(f: &Folder, page: &str, script: &str) -> Option<f64> {
    let Some(browser) = browser() else {
        eprintln!("not tested: there is no chromium on the path");
        return None;
    };
    let text = String::from_utf8(f.read(page)).unwrap();
    let visited = format!("visit-{page}");
    f.write(&visited, text.replace("</body>", &format!("{BEFORE}{script}{AFTER}</body>")));
    let mut least = f64::INFINITY;
    for width in ["1600,900", "420,800"] {
        let mut command = Command::new(&browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--dump-dom"]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
        ]);
        // Who waits does so in time that passes at once; else time is that of the clock.
        command.args(script.contains("await").then_some("--virtual-time-budget=5000"));
        command.arg(format!("--window-size={width}"));
        command.arg(format!("--user-data-dir={}", f.path().join("profile").display()));
        let done = command.arg(format!("file://{}", f.path().join(&visited).display())).output().unwrap();
        let (dom, log) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let title = dom.split_once("<title>").and_then(|(_, t)| t.split_once("</title>")).map_or("", |(t, _)| t);
        let opened = title.strip_prefix("visited in ").and_then(|ms| ms.parse::<f64>().ok());
        assert!(opened.is_some(), "{page} at {width}: {title}\n{log}");
        assert!(!log.contains(":CONSOLE"), "{page} at {width}: {log}");
        least = least.min(opened.unwrap_or(least));
    }
    Some(least)
}

//! One trial for each file below `filetests`.
//!
//! `cargo test -p handloom-tests --test filetests isa/integer/sad` runs those whose name holds the text. `-- --emit-job DIR`
//! writes the job files of the chosen tests instead of running them. `UPDATE_EXPECT=1` rewrites side files.

use std::path::PathBuf;
use std::process::ExitCode;

use handloom_tests::filetest::{FileTest, collect, job, root, run_file};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    let mut folder = None;
    if let Some(i) = words.iter().position(|w| w == "--emit-job") {
        words.remove(i);
        if i < words.len() {
            folder = Some(PathBuf::from(words.remove(i)));
        }
    }
    let args = Arguments::from_iter(words);
    let tests = match collect(&root()) {
        Ok(tests) => tests,
        Err(e) => {
            let trial = Trial::test("collect", move || Err(e.into()));
            return libtest_mimic::run(&args, vec![trial]).exit_code();
        }
    };
    let trials = tests.into_iter().map(|t| trial(t, folder.clone())).collect();
    libtest_mimic::run(&args, trials).exit_code()
}

fn trial(test: FileTest, folder: Option<PathBuf>) -> Trial {
    Trial::test(test.name.clone(), move || {
        match &folder {
            // Tests without launches have nothing to write.
            Some(folder) => drop(job::write(&test, folder)),
            None => run_file(&test)?,
        }
        Ok(())
    })
}

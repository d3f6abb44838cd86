//! What a process is told by its environment: the options of `handloom exec`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use handloom_ir::simt::Counting;
use handloom_profile::Form;
use handloom_runtime::words::{capability, size_bytes};
use handloom_runtime::{AsyncOrder, Bounds, Check, CheckConfig, Checks, QUIET, RaceOptions};

/// The most devices of a process: each takes a window of addresses.
pub const MAX_DEVICES: u32 = 8;

/// The settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ten times the major number of the devices' capability, plus the minor one.
    pub capability: u32,
    /// How many devices there are.
    pub devices: u32,
    /// Which of them the program sees, in its order.
    pub visible: Vec<u32>,
    /// Bytes of memory of a device; `None` for what the host has.
    pub memory: Option<u64>,
    /// Host threads of a launch; 0 for one a core.
    pub threads: usize,
    /// How strictly addresses are checked.
    pub bounds: Bounds,
    /// Order of scheduling.
    pub seed: u64,
    /// When results of asynchronous instructions come.
    pub async_order: Option<AsyncOrder>,
    /// Longest time of a launch: to make its code, and to run.
    pub timeout: Option<Duration>,
    /// When the program is to be over, launches with it.
    pub deadline: Option<SystemTime>,
    /// How long launches may wait for memory to change while the program waits for them and nothing else happens.
    pub quiet: Option<Duration>,
    /// Kernels may use all memory of the process, and launches end before the call returns.
    pub open_addresses: bool,
    /// Memory that is never freed is told when the program ends.
    pub leaks: bool,
    /// Calls are told on standard error.
    pub trace: bool,
    /// Images are written into this folder.
    pub dump_images: Option<PathBuf>,
    /// Launches, traps and findings are written into this file.
    pub report: Option<PathBuf>,
    /// Traps and findings are written into this file too, for who runs the program.
    pub findings: Option<PathBuf>,
    /// Device memory is filled with a pattern when it is allocated and when it is freed.
    pub poison: bool,
    /// What is checked while kernels run.
    pub check: Option<CheckConfig>,
    /// What is counted while kernels run.
    pub count: Option<CountConfig>,
    /// What the host does, and when, is written into this file.
    pub trace_file: Option<PathBuf>,
    /// When that trace began; `None` for when this process did.
    pub trace_begin: Option<SystemTime>,
}

/// What is counted, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountConfig {
    /// How much.
    pub level: Counting,
    /// A page is to show when the host ran blocks.
    pub is_drawn: bool,
    /// Where it goes.
    pub to: CountsTo,
}

/// Where counts go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountsTo {
    /// Into a folder, for who runs the program.
    Folder(PathBuf),
    /// Into reports: a profile, a coverage.
    Reports([Option<(PathBuf, Form)>; 2]),
}

/// `LEVEL:FOLDER`, as `exec` says it.
fn counts_for_exec(text: &str) -> Option<CountConfig> {
    let (level, folder) = text.split_once(':')?;
    let (level, is_drawn) = match level {
        "all" => (Counting::All, false),
        "page" => (Counting::All, true),
        "coverage" => (Counting::Coverage, false),
        _ => return None,
    };
    Some(CountConfig { level, is_drawn, to: CountsTo::Folder(PathBuf::from(folder)) })
}

/// A file of this process: `%p` is its number.
fn of_process(text: &str) -> PathBuf {
    PathBuf::from(text.replace("%p", &std::process::id().to_string()))
}

/// A report of one of some forms.
fn report(text: &str, forms: &[Form]) -> Option<(PathBuf, Form)> {
    let path = of_process(text);
    let form = Form::of(&path).filter(|form| forms.contains(form))?;
    Some((path, form))
}

/// Seconds, with a fraction if need be; 0 for no limit.
fn seconds(text: &str) -> Option<Option<Duration>> {
    let limit = Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()?;
    Some((!limit.is_zero()).then_some(limit))
}

/// The devices that `CUDA_VISIBLE_DEVICES` leaves: numbers up to the first word that names none.
fn visible(text: Option<&str>, devices: u32) -> Vec<u32> {
    let Some(text) = text else { return (0..devices).collect() };
    let mut seen = Vec::new();
    for word in text.split(',') {
        match word.trim().parse::<u32>() {
            Ok(n) if n < devices && !seen.contains(&n) => seen.push(n),
            _ => break,
        }
    }
    seen
}

impl Config {
    /// Whether a check is asked for.
    pub fn checks(&self, check: Check) -> bool {
        self.check.is_some_and(|asked| asked.checks.has(check))
    }

    /// How long a launch that begins now may take.
    pub fn time_left(&self) -> Option<Duration> {
        // One that begins too late is stopped as soon as it can be.
        let least = Duration::from_millis(1);
        let left = |end: SystemTime| end.duration_since(SystemTime::now()).unwrap_or_default().max(least);
        self.deadline.map(left).into_iter().chain(self.timeout).min()
    }

    /// Reads the settings by a function that looks a variable up. What cannot be read is told in a sentence and left at its default: a driver has no
    /// other way to say it.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Config, Vec<String>) {
        let mut wrong = Vec::new();
        let mut get = |name: &str, expected: &str, take: &mut dyn FnMut(&str) -> bool| {
            if let Some(text) = variable(name).filter(|t| !t.is_empty())
                && !take(&text)
            {
                wrong.push(format!("{name} is `{text}`: expected {expected}"));
            }
        };
        let mut config = Config {
            capability: 89,
            devices: 1,
            visible: Vec::new(),
            memory: None,
            threads: 0,
            bounds: Bounds::Exact,
            seed: 0,
            async_order: None,
            timeout: None,
            deadline: None,
            quiet: Some(QUIET),
            open_addresses: false,
            trace: false,
            dump_images: None,
            report: None,
            findings: None,
            poison: false,
            leaks: false,
            check: None,
            count: None,
            trace_file: None,
            trace_begin: None,
        };
        let (mut checks, mut races) = (None, RaceOptions::default());
        let c = &mut config;
        let flag = |text: &str, to: &mut bool| match text {
            "1" | "true" | "yes" | "on" => {
                *to = true;
                true
            }
            "0" | "false" | "no" | "off" => {
                *to = false;
                true
            }
            _ => false,
        };
        get("HANDLOOM_CC", "a capability, as `8.9`", &mut |t| capability(t).map(|v| c.capability = v).is_some());
        get("HANDLOOM_DEVICES", "a number from 0 to 8", &mut |t| {
            t.parse().ok().filter(|n| *n <= MAX_DEVICES).map(|n| c.devices = n).is_some()
        });
        get("HANDLOOM_MEMORY", "a size, as `4G`", &mut |t| size_bytes(t).map(|v| c.memory = Some(v)).is_some());
        get("HANDLOOM_THREADS", "a number", &mut |t| t.parse().ok().map(|v| c.threads = v).is_some());
        get("HANDLOOM_SEED", "a number", &mut |t| t.parse().ok().map(|v| c.seed = v).is_some());
        get("HANDLOOM_ASYNC_ORDER", "`earliest`, `latest` or `seed`", &mut |t| {
            c.async_order = AsyncOrder::named(t);
            c.async_order.is_some()
        });
        get("HANDLOOM_TIMEOUT", "seconds", &mut |t| seconds(t).map(|v| c.timeout = v).is_some());
        let moment = |text: &str| UNIX_EPOCH.checked_add(Duration::from_nanos(text.parse().ok()?));
        get("HANDLOOM_DEADLINE", "what `handloom exec` says", &mut |t| {
            c.deadline = moment(t);
            c.deadline.is_some()
        });
        get("HANDLOOM_QUIET", "seconds", &mut |t| seconds(t).map(|v| c.quiet = v).is_some());
        get("HANDLOOM_BOUNDS", "`exact` or `contained`", &mut |t| match t {
            "exact" => {
                c.bounds = Bounds::Exact;
                true
            }
            "contained" => {
                c.bounds = Bounds::Contained;
                true
            }
            _ => false,
        });
        get("HANDLOOM_OPEN_ADDRESSES", "`1` or `0`", &mut |t| flag(t, &mut c.open_addresses));
        get("HANDLOOM_TRACE_API", "`1` or `0`", &mut |t| flag(t, &mut c.trace));
        get("HANDLOOM_POISON", "`1` or `0`", &mut |t| flag(t, &mut c.poison));
        get("HANDLOOM_CHECK", "some of `memory`, `init`, `race` and `sync`, separated by commas", &mut |t| {
            Checks::parse(t).map(|v| checks = Some(v)).is_ok()
        });
        get("HANDLOOM_CHECK_VOLATILE", "`1` or `0`", &mut |t| flag(t, &mut races.strong_volatile));
        get("HANDLOOM_CHECK_SAME_VALUES", "`1` or `0`", &mut |t| flag(t, &mut races.same_values));
        get("HANDLOOM_CHECK_FIRST", "`1` or `0`", &mut |t| flag(t, &mut races.first));
        get("HANDLOOM_CHECK_LEAKS", "`1` or `0`", &mut |t| flag(t, &mut c.leaks));
        races.keeps_footprint = checks.is_some_and(|checks| checks.has(Check::Race));
        c.check = checks.map(|checks| CheckConfig { checks, races });
        let [mut profile, mut cover] = [None, None];
        get("HANDLOOM_PROFILE", "a file that ends in .html or .json", &mut |t| {
            profile = report(t, &[Form::Html, Form::Json]);
            profile.is_some()
        });
        get("HANDLOOM_COVER", "a file that ends in .html, .json or .info", &mut |t| {
            cover = report(t, &[Form::Html, Form::Json, Form::Lcov]);
            cover.is_some()
        });
        let level = if profile.is_some() { Counting::All } else { Counting::Coverage };
        if profile.is_some() || cover.is_some() {
            let is_drawn = profile.as_ref().is_some_and(|(_, form)| *form == Form::Html);
            c.count = Some(CountConfig { level, is_drawn, to: CountsTo::Reports([profile, cover]) });
        }
        get("HANDLOOM_COUNTS", "what `handloom exec` says", &mut |t| {
            c.count = counts_for_exec(t);
            c.count.is_some()
        });
        c.trace_file = variable("HANDLOOM_TRACE").filter(|t| !t.is_empty()).map(|t| of_process(&t));
        get("HANDLOOM_TRACE_BEGIN", "what `handloom exec` says", &mut |t| {
            c.trace_begin = moment(t);
            c.trace_begin.is_some()
        });
        c.dump_images = variable("HANDLOOM_DUMP_IMAGES").filter(|t| !t.is_empty()).map(PathBuf::from);
        c.report = variable("HANDLOOM_REPORT").filter(|t| !t.is_empty()).map(PathBuf::from);
        c.findings = variable("HANDLOOM_FINDINGS").filter(|t| !t.is_empty()).map(PathBuf::from);
        c.visible = visible(variable("CUDA_VISIBLE_DEVICES").as_deref(), c.devices);
        if config.check.is_some() && config.count.take().is_some() {
            wrong.push("launches are counted as they run without checks: leave HANDLOOM_CHECK or HANDLOOM_PROFILE and HANDLOOM_COVER out".to_owned());
        }
        (config, wrong)
    }
}

#[cfg(test)]
mod tests {
    use handloom_runtime::Check;

    use super::*;

    #[test]
    fn visible_devices_are_read() {
        assert_eq!(visible(None, 2), [0, 1]);
        assert_eq!(visible(Some("1,0,9,1"), 2), [1, 0]);
        assert!(visible(Some(""), 2).is_empty());
    }

    #[test]
    fn what_is_wrong_is_told() {
        let vars = |name: &str| match name {
            "HANDLOOM_CC" => Some("ninety".to_owned()),
            "HANDLOOM_DEVICES" => Some("2".to_owned()),
            "HANDLOOM_CHECK" => Some("race,sync".to_owned()),
            "HANDLOOM_CHECK_VOLATILE" => Some("1".to_owned()),
            "HANDLOOM_TRACE" => Some("t-%p.json".to_owned()),
            _ => None,
        };
        let (config, wrong) = Config::read(vars);
        assert_eq!(config.trace_file, Some(PathBuf::from(format!("t-{}.json", std::process::id()))));
        assert_eq!((config.capability, config.devices, config.visible.len()), (89, 2, 2));
        let check = config.check.unwrap();
        assert!(check.checks.has(Check::Sync) && !check.checks.has(Check::Init) && check.races.strong_volatile);
        assert_eq!(wrong, ["HANDLOOM_CC is `ninety`: expected a capability, as `8.9`"]);
    }

    #[test]
    fn reports_are_told_apart_by_their_endings() {
        let read =
            |name: &'static str, value: &'static str| Config::read(move |n| (n == name).then(|| value.to_owned()));
        let count = |name, value| read(name, value).0.count;
        let (path, form) = (PathBuf::from("p.html"), Form::Html);
        let to = CountsTo::Reports([Some((path, form)), None]);
        assert_eq!(count("HANDLOOM_PROFILE", "p.html"), Some(CountConfig { level: Counting::All, is_drawn: true, to }));
        assert_eq!(count("HANDLOOM_COVER", "c.info").map(|c| c.level), Some(Counting::Coverage));
        let to = CountsTo::Folder(PathBuf::from("/tmp/a:b"));
        let coverage = CountConfig { level: Counting::Coverage, is_drawn: false, to };
        assert_eq!(count("HANDLOOM_COUNTS", "coverage:/tmp/a:b"), Some(coverage));
        assert!(count("HANDLOOM_COUNTS", "page:/tmp/a").is_some_and(|c| c.is_drawn && c.level == Counting::All));
        let deadline = |text: &'static str| read("HANDLOOM_DEADLINE", text).0.time_left();
        assert_eq!(deadline(""), None);
        // One that is over leaves as little as there can be, one to come what is left.
        assert_eq!(deadline("1"), Some(Duration::from_millis(1)));
        assert!(deadline("9000000000000000000").is_some_and(|left| left > Duration::from_secs(60)));
        let (config, wrong) = read("HANDLOOM_PROFILE", "c.info");
        assert_eq!(config.count, None);
        assert_eq!(wrong, ["HANDLOOM_PROFILE is `c.info`: expected a file that ends in .html or .json"]);
    }
}

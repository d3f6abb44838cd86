//! Threads that answer each other in strict alternation: they come apart after a while, by the seed, on one host thread too.

use std::time::Duration;

use handloom_runtime::{Arg, Device, Engine, LaunchConfig, LaunchError, Module, launch};

use crate::SM_90 as HEAD;

/// Where the threads that play stand: the player of `%tid.x` and `%ctaid.x` (`-1` for none) in `%me`.
#[derive(Clone, Copy, Debug)]
struct Stand {
    name: &'static str,
    grid: u32,
    block: u32,
    cluster: u32,
    me: &'static str,
}

const LANES: Stand = Stand { name: "lanes of a warp", grid: 1, block: 3, cluster: 1, me: "mov.u32 %me, %tid.x;" };
const WARPS: Stand = Stand {
    name: "warps of a cta",
    grid: 1,
    block: 96,
    cluster: 1,
    me: "mov.u32 %t, %tid.x; and.b32 %r9, %t, 31; setp.ne.u32 %q, %r9, 0; @%q ret; shr.u32 %me, %t, 5;",
};
const CTAS: Stand = Stand { name: "ctas", grid: 3, block: 1, cluster: 1, me: "mov.u32 %me, %ctaid.x;" };
const CLUSTER: Stand = Stand { name: "ctas of a cluster", grid: 3, block: 1, cluster: 3, me: "mov.u32 %me, %ctaid.x;" };

const STANDS: [Stand; 4] = [LANES, WARPS, CTAS, CLUSTER];

/// A game: what a player does in a turn, from `%me` and `%n` (the number of players). `%q`: it has another turn.
struct Game {
    name: &'static str,
    turn: &'static str,
}

const GAMES: [Game; 4] = [
    // Until it reads what it wrote itself.
    Game { name: "exch", turn: "add.u32 %r1, %me, 1; atom.global.exch.b32 %r2, [%x], %r1; setp.ne.u32 %q, %r2, %r1;" },
    // As long as it reads what the player before it wrote.
    Game {
        name: "ring",
        turn: "add.u32 %r1, %me, 1; rem.u32 %r1, %r1, %n; atom.global.exch.b32 %r2, [%x], %r1; setp.eq.u32 %q, %r2, %me;",
    },
    // As long as it finds its own number and can pass it on.
    Game {
        name: "cas",
        turn: "add.u32 %r1, %me, 1; rem.u32 %r1, %r1, %n; atom.global.cas.b32 %r2, [%x], %me, %r1; setp.eq.u32 %q, %r2, %me;",
    },
    // Until it fails five times in a row.
    Game {
        name: "five",
        turn: "add.u32 %r1, %me, 1; rem.u32 %r1, %r1, %n; atom.global.cas.b32 %r2, [%x], %me, %r1;
    add.u32 %fails, %fails, 1; setp.eq.u32 %q, %r2, %me; selp.u32 %fails, 0, %fails, %q; setp.lt.u32 %q, %fails, 5;",
    },
];

/// `apart`: each player has a loop of its own.
fn text(game: &Game, stand: Stand, players: u32, apart: bool) -> String {
    let a_loop = |label: &str| {
        format!(
            "{label}:
    add.u32 %turns, %turns, 1;
    {}
    @%q bra {label};\n",
            game.turn
        )
    };
    let loops = if apart {
        let own = |p: u32| {
            format!("setp.ne.u32 %q, %me, {p}; @%q bra next{p};\n{}bra done;\nnext{p}:\n", a_loop(&format!("again{p}")))
        };
        (0..players).map(own).collect()
    } else {
        a_loop("again")
    };
    format!(
        "{HEAD}
.visible .entry k(.param .u64 buf, .param .u32 players)
{{
    .reg .b32 %r<10>, %me, %n, %t, %turns, %fails;
    .reg .b64 %x, %o;
    .reg .pred %q;
    ld.param.u64 %x, [buf];
    ld.param.u32 %n, [players];
    mov.u32 %turns, 0;
    mov.u32 %fails, 0;
    {}
    setp.ge.u32 %q, %me, %n;
    @%q ret;
    {loops}
done:
    mul.wide.u32 %o, %me, 4;
    add.u64 %o, %x, %o;
    st.global.u32 [%o+4], %turns;
    ret;
}}",
        stand.me
    )
}

/// The turns of each player.
fn play(text: &str, stand: Stand, players: u32, config: LaunchConfig) -> Result<Vec<u32>, LaunchError> {
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", text).unwrap();
    let f = module.function(None).unwrap();
    let buffer = device.zeroed(64).unwrap();
    let cluster = (stand.cluster > 1).then_some([stand.cluster, 1, 1]);
    let config = LaunchConfig { cluster, timeout: Some(Duration::from_secs(30)), ..config };
    let _ = launch(&f, &config, &[Arg::from(&buffer), Arg::from(players)])?;
    let words = buffer.to_vec();
    Ok((1..=players as usize).map(|i| u32::from_le_bytes(words[4 * i..4 * i + 4].try_into().unwrap())).collect())
}

fn config(stand: Stand, engine: Engine, seed: u64, threads: usize) -> LaunchConfig {
    LaunchConfig { engine, seed, threads, ..LaunchConfig::new([stand.grid, 1, 1], [stand.block, 1, 1]) }
}

#[test]
fn players_come_apart() {
    for stand in STANDS {
        for game in &GAMES {
            for (players, apart) in [(2, false), (3, false), (2, true), (3, true)] {
                let text = text(game, stand, players, apart);
                for engine in [Engine::Interp, Engine::Jit] {
                    for (seed, threads) in [(0, 1), (1, 1), (7, 2), (0, 2)] {
                        let c = config(stand, engine, seed, threads);
                        let turns = play(&text, stand, players, c).unwrap_or_else(|e| {
                            panic!(
                                "{}, {}, {players} players, {apart}, {engine:?}, {seed}, {threads}: {e}",
                                stand.name, game.name
                            )
                        });
                        assert!(turns.iter().all(|n| *n > 0), "{turns:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for stand in STANDS {
        let text = text(&GAMES[0], stand, 2, false);
        for engine in [Engine::Interp, Engine::Jit] {
            let of = |seed| play(&text, stand, 2, config(stand, engine, seed, 1)).unwrap();
            let runs: Vec<Vec<u32>> = (0..6).map(of).collect();
            let again: Vec<Vec<u32>> = (0..6).map(of).collect();
            assert_eq!(runs, again, "{} {engine:?}", stand.name);
            // Where turns alternate strictly, the seed ends it; elsewhere the game is over at once.
            let alternates = [LANES.name, WARPS.name].contains(&stand.name);
            let long = runs[0].iter().all(|n| *n > 500);
            assert_eq!(long, alternates || stand.name == CLUSTER.name, "{} {engine:?} {runs:?}", stand.name);
            assert!(!long || runs.iter().any(|r| *r != runs[0]), "{} {engine:?} {runs:?}", stand.name);
        }
    }
}

/// A lane that writes in its waiting loop does not keep the other lanes of its warp from what it waits for.
#[test]
fn a_busy_loop_lets_the_rest_of_its_warp_pass() {
    for condition in ["eq", "ne"] {
        let text = format!(
            "{HEAD}
.visible .entry k(.param .u64 buf, .param .u32 players)
{{
    .reg .b32 %r<10>;
    .reg .b64 %x;
    .reg .pred %q;
    ld.param.u64 %x, [buf];
    mov.u32 %r1, %tid.x;
    setp.{condition}.u32 %q, %r1, 0;
    @%q bra other;
spin:
    atom.global.add.u32 %r3, [%x+4], 1;
    ld.volatile.global.u32 %r2, [%x];
    setp.eq.u32 %q, %r2, 0;
    @%q bra spin;
    ret;
other:
    st.volatile.global.u32 [%x], 1;
    st.volatile.global.u32 [%x+8], 1;
    ret;
}}"
        );
        let stand = Stand { block: 2, ..LANES };
        for engine in [Engine::Interp, Engine::Jit] {
            for seed in 0..3 {
                let turns = play(&text, stand, 2, config(stand, engine, seed, 1)).unwrap();
                assert!(turns[0] > 0 && turns[1] == 1, "{condition} {engine:?} {turns:?}");
            }
        }
    }
}

/// Turns that vary hide no deadlock: the players alternate for long, then one waits for what nobody writes.
#[test]
fn deadlocks_after_many_turns_are_found() {
    const WAIT: Game = Game {
        name: "wait",
        turn: "add.u32 %r1, %me, 1; rem.u32 %r1, %r1, %n; atom.global.cas.b32 %r2, [%x], %me, %r1;
    setp.ne.u32 %q, %turns, 0xffffffff;
    setp.lt.u32 %q, %turns, 20000; @%q bra go_on;
wait:
    ld.volatile.global.u32 %r3, [%x]; setp.ne.u32 %q, %r3, 99; @%q bra wait;
go_on:
    setp.ne.u32 %q, %turns, 0;",
    };
    for stand in STANDS {
        let text = text(&WAIT, stand, 3, false);
        for engine in [Engine::Interp, Engine::Jit] {
            for (seed, threads) in [(0, 1), (5, 1), (5, 2)] {
                match play(&text, stand, 3, config(stand, engine, seed, threads)) {
                    Err(LaunchError::Trap(trap)) => {
                        assert_eq!(trap.kind().word(), "deadlock", "{} {engine:?} {}", stand.name, trap.message());
                        let waiting: u32 = trap.trap().waiters.iter().map(|w| w.count).sum();
                        assert_eq!(waiting, 3, "{} {engine:?}", stand.name);
                    }
                    other => panic!("{} {engine:?} {seed} {threads}: {other:?}", stand.name),
                }
            }
        }
    }
}

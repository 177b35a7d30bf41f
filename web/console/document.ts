// What a watched server tells, line by line. Made from toolbox/admin/src/watch/document.rs by `UPDATE_EXPECT=1 cargo
// test -p throng-admin`: change it there.

export type Line = { "line": "hello" } & Hello | { "line": "past" } & Past | { "line": "frames" } & Frames | { "line": "health" } & Health | { "line": "second" } & Second;

export type Hello = { 
/**
 * Of the executable.
 */
version: string, 
/**
 * What the asker may do: `observe` or `operate`.
 */
role: string, 
/**
 * The name of the asker's key; null without one.
 */
who: string | null, };

export type Past = { 
/**
 * Since the start (s).
 */
second: Array<number>, 
/**
 * By the host's clock (s since 1970).
 */
at_unix_s: Array<number>, players: Array<number>, worlds_overloaded: Array<number>, frame_ms_max: Array<number>, frame_budget_ms: Array<number>, ticks_missed: Array<number>, bytes_out_per_s: Array<number>, cpu_cores: Array<number>, rss_mb: Array<number>, 
/**
 * As in a second's `host`.
 */
host: Array<HostPast>, };

export type HostPast = { name: string, values: Array<number | null>, };

export type Frames = { 
/**
 * Their numbers in the grid, and how long each took (us): two lists of one length.
 */
numbers: Array<number>, us: Array<number>, 
/**
 * Frames that came too fast to be told.
 */
lost: number, };

export type Second = { 
/**
 * By the host's clock (s since 1970).
 */
at_unix_s: number, server: ServerNow, load: Load, door: Door, 
/**
 * The costliest first.
 */
subsystems: Array<Subsystem>, categories: Array<CategoryTime>, kinds: Array<KindOfWorld>, 
/**
 * The costliest first, `WORLDS_MAX` at most.
 */
worlds: Worlds, worlds_left_out: number, 
/**
 * Of most bytes first, `PACKETS_MAX` at most.
 */
packets: Array<PacketsOfKind>, 
/**
 * Who takes most first, `CLIENTS_MAX` at most.
 */
clients: Array<ClientNow>, memory: MemoryNow, 
/**
 * What the process uses by its own word (`inside.`) and by others' (`outside.`); names as in docs/metrics.md.
 */
host: Array<HostFigure>, recorder: RecorderNow | null, };

export type Health = { 
/**
 * `running`, `sleeping` or `stuck`.
 */
state: string, 
/**
 * Since the end of the last frame (ms).
 */
frame_age_ms: number, 
/**
 * For how long no worker has finished a tick though each has one (ms).
 */
workers_stuck_ms: number, worlds_stuck: number, long_tasks_stuck: number, 
/**
 * The store of the saves has failed, or takes nothing.
 */
saves_are_away: boolean, 
/**
 * Requests that changed something since the start; `changes` of the console lists the last.
 */
changes: number, watch: WatchCost, };

export type ServerNow = { 
/**
 * Since the start (s).
 */
second: number, workers: number, players: number, players_by_kind: Array<Count>, worlds: number, worlds_awake: number, plans_parked: number, frame_ms_p50: number, frame_ms_max: number, frame_budget_ms: number, tick_lateness_ms_max: number, ticks: number, ticks_missed: number, 
/**
 * Of these the host's, and the most that it took of a core for one of them (ms).
 */
ticks_missed_host: number, host_took_ms_max: number, packets_in_per_s: number, packets_out_per_s: number, bytes_out_per_s: number, cpu_cores: number, rss_mb: number, 
/**
 * What the game sets.
 */
game_gauges: Array<Count>, };

export type Count = { name: string, count: number, };

export type Load = { 
/**
 * Of the world that is worst off: `normal` to `admission_closed`.
 */
overload: string, worlds_overloaded: number, worlds_slowed: number, 
/**
 * The slowest that any world's time ran [0 to 1], and the share of all worlds' time that was lost by it.
 */
time_factor_min: number, time_lost_share: number, admission_is_closed: boolean, 
/**
 * Workers that leave their cores to long tasks.
 */
starvation_level: number, 
/**
 * Newcomers wait because dropped worlds pile up.
 */
admission_waits: boolean, long_tasks_waiting: number, 
/**
 * What all that are not done will take of a core, and of that what gives memory back (ms).
 */
long_tasks_ms: number, long_tasks_freeing_ms: number, };

export type Door = { join_queue: number, 
/**
 * Clients whose world is being made.
 */
placements_pending: number, };

export type Subsystem = { name: string, 
/**
 * Its heading.
 */
category: string, 
/**
 * In the mean frame and in the costliest of the second.
 */
us_per_frame: number, us_frame_max: number, lock_wait_us_per_frame: number, 
/**
 * What it may take in a frame, in worlds of kinds that have no budget of their own for it; null if nothing is said.
 */
budget_us: number | null, 
/**
 * Of kinds of worlds in which it took anything or has a budget.
 */
kinds: Array<InKind>, };

export type InKind = { kind: string, 
/**
 * In all worlds of the kind together, in the costliest frame.
 */
us_frame_max: number, frame_budget_us: number | null, 
/**
 * In the mean tick of one world; null in a second without ticks.
 */
us_per_tick: number | null, tick_budget_us: number | null, };

export type CategoryTime = { name: string, us_per_frame: number, };

export type KindOfWorld = { kind: string, ticks: number, 
/**
 * By the clock.
 */
tick_us_mean: number, tick_us_max: number, };

export type Worlds = { 
/**
 * Such as `7` or `7.2`, as commands take it.
 */
world: Array<string>, 
/**
 * The names of kinds, and of each world which of them it is of.
 */
kinds: Array<string>, kind: Array<number>, rate_hz: Array<number>, players: Array<number>, is_dormant: Array<boolean>, 
/**
 * How fast its time runs.
 */
time_percent: Array<number>, 
/**
 * Smoothed, and the last one.
 */
tick_us: Array<number>, last_tick_us: Array<number>, 
/**
 * Of the last 10 to 20 s.
 */
longest_tick_us: Array<number>, 
/**
 * What its ticks take of one worker [0 to 1 and above].
 */
load: Array<number>, 
/**
 * Since it is there.
 */
ticks_missed: Array<number>, 
/**
 * Its last episode of being behind, by the host's clock (s since 1970): when the first of its late ticks was due, and
 * when the last of them ended. Null if there was none.
 */
behind_unix_s: Array<[number, number] | null>, 
/**
 * Its step of the overload ladder.
 */
overload: Array<string>, 
/**
 * For how long a worker has been in its tick, where that is a second and more: it hangs.
 */
hangs_for_ms: Array<number | null>, };

export type PacketsOfKind = { kind: string, cause: string, packets_per_s: number, updates_per_s: number, bytes_per_s: number, };

export type ClientNow = { 
/**
 * A number of up to 64 bits, in words.
 */
client: string, 
/**
 * Kind and world.
 */
world: string, 
/**
 * Estimated time to open what it sends and to write what it is sent.
 */
line_us_per_s: number, work_per_s: number, messages_per_s: number, refused_per_s: number, bytes_in_per_s: number, bytes_out_per_s: number, };

export type MemoryNow = { rss_mb: number, 
/**
 * Estimated from samples; who holds most first, `SCOPES_MAX` at most. Empty without a recorder.
 */
scopes: Array<ScopeMemory>, 
/**
 * Of scopes that are left out.
 */
others_mb: number, };

export type ScopeMemory = { 
/**
 * `outside of every scope` for what was allocated there.
 */
scope: string, mb: number, };

export type HostFigure = { name: string, value: number, };

export type RecorderNow = { captures: number, captures_failed: number, in_cooldown: number, records_lost: number, memory_mb: number, };

export type WatchCost = { 
/**
 * Streams now, of `WATCHERS_MAX`.
 */
watchers: number, 
/**
 * What the admin thread took to make the line before, and how long it was.
 */
us: number, bytes: number, 
/**
 * Lines that watchers were too slow for, since the start.
 */
lines_dropped: number, };

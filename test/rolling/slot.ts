import path from 'node:path';
import { startNode, type TestProcess } from '../support/process.js';
import { KNOWN_FAULTS } from './version-before.js';

export type Version = 'before' | 'now';
export type EndSignal = 'SIGTERM' | 'SIGKILL';
/** `serving` until it is told to stop, `stopping` until it has ended, and `down` until the next process is ready. */
export type Phase = 'serving' | 'stopping' | 'down';

export interface SlotOptions {
  readonly name: string;
  readonly role: 'api' | 'worker';
  readonly env: Readonly<Record<string, string>>;
  /** The folder of each version. */
  readonly folders: Readonly<Record<Version, string>>;
}

/** Pino's level of errors. */
const ERROR = 50;

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly migration?: string;
  readonly err?: { readonly message?: string };
}

/** A place in the fleet, held by one process after the other, each of either version. */
export class Slot {
  readonly name: string;
  readonly role: 'api' | 'worker';
  /** Errors in the logs of its processes, and ends that were not ordered or not clean: a line each. */
  readonly faults: string[] = [];
  /** The migrations that its processes have applied. */
  readonly applied: string[] = [];
  phase: Phase = 'down';
  /** What the last answer to /readyz said, by which a load balancer goes. */
  isReady = false;
  version: Version = 'before';
  /** How often its process was told to stop or was killed. */
  exchanges = 0;
  /** Whether the process that stops is killed, or of the version before, which does not announce its end to a load balancer. */
  mayDrop = true;
  readonly #options: SlotOptions;
  /** Processes that were told to end. */
  readonly #ordered = new Set<TestProcess>();
  #process: TestProcess | undefined;

  constructor(options: SlotOptions) {
    this.name = options.name;
    this.role = options.role;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#options.env['PORT']}`;
  }

  /** Resolves when a process of this version is ready. */
  async start(version: Version): Promise<void> {
    this.#hold(await this.#launch(version), version);
  }

  /** Puts a process of this version in the place of the present one, which ends before or, as where a rollout has room for one more, after its start. */
  async exchange(version: Version, signal: EndSignal, order: 'end first' | 'start first'): Promise<void> {
    if (order === 'end first') {
      await this.end(signal);
      await this.start(version);
    } else {
      const started = await this.#launch(version);
      await this.end(signal);
      this.#hold(started, version);
    }
  }

  /** Ends the process; a killed one needs no clean exit. */
  async end(signal: EndSignal): Promise<void> {
    const ended = this.#process!;
    this.#ordered.add(ended);
    this.exchanges += 1;
    this.mayDrop = signal === 'SIGKILL' || this.version === 'before';
    this.phase = 'stopping';
    ended.kill(signal);
    const { code, signal: by } = await ended.exit;
    this.phase = 'down';
    if (signal === 'SIGKILL') return;
    if (code !== 0) this.#blame(this.version, `ended with ${by ?? code} after ${signal}`);
    if (ended.stderr.includes('stopping took too long')) {
      const [late = 'it'] = /[\w ]+ has not stopped yet/.exec(ended.stdout + ended.stderr) ?? [];
      this.#blame(this.version, `took too long to stop: ${late}`);
    }
  }

  async #launch(version: Version): Promise<TestProcess> {
    const { role, env, folders } = this.#options;
    const started = startNode([path.join(folders[version], 'bin/muster'), role], env);
    void this.#watch(started, version);
    await started.waitForOutput(new RegExp(`ready: ${role}`));
    return started;
  }

  async #watch(started: TestProcess, version: Version): Promise<void> {
    const { code, signal } = await started.exit;
    this.#readLog(version, started);
    if (!this.#ordered.has(started)) this.#blame(version, `ended by itself with ${signal ?? code}`);
  }

  #hold(started: TestProcess, version: Version): void {
    [this.#process, this.version, this.phase] = [started, version, 'serving'];
  }

  #readLog(version: Version, { stdout, stderr }: TestProcess): void {
    for (const line of `${stdout}\n${stderr}`.split('\n')) {
      if (!line.startsWith('{')) continue;
      const { level, msg, migration, err } = parseLine(line);
      const error = `${msg} ${err?.message ?? ''}`.trim();
      if (level >= ERROR) this.#blame(version, `logged: ${error}`);
      if (msg === 'migration applied') this.applied.push(`${this.name} (${version}): ${migration}`);
    }
  }

  #blame(version: Version, fault: string): void {
    if (version === 'before' && KNOWN_FAULTS.some((known) => known.test(fault))) return;
    this.faults.push(`${this.name} (${version}) ${fault}`);
  }
}

/** A killed process may have written half a line. */
function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { level: 0, msg: line };
  }
}

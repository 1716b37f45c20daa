import { readdirSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { parseCLI, type Reporter, startVitest, type TestModule } from 'vitest/node';

/**
 * Runs the suite once and prints its processor time: user and system seconds of vitest and of all processes that it started,
 * PostgreSQL, Redis and browsers included. With `--by-file` the files run one after the other, and the ten that took most are
 * listed. Other arguments are vitest's. It reads /proc, so it needs Linux. The time of a process that outlives its parent is not
 * counted.
 */
const EXPENSIVE = 10;
const TICKS_A_SECOND = 100; // USER_HZ, the same on every platform that Node runs on

interface ProcessTimes {
  parent: number;
  seconds: number;
}

function timesOf(pid: string): ProcessTimes | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // from the third field on: the second is a name with blanks
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { parent: Number(fields[1]), seconds: ticks / TICKS_A_SECOND };
  } catch {
    return undefined; // It has ended in between, and its parent has its time.
  }
}

/** Seconds of this process, of all that descend from it, and of those of them that have ended. */
function treeSeconds(): number {
  const processes = new Map<number, ProcessTimes>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const times = timesOf(pid);
    if (times) processes.set(Number(pid), times);
  }
  const descends = (pid: number): boolean => pid === process.pid || (processes.has(pid) && descends(processes.get(pid)!.parent));
  return [...processes].reduce((sum, [pid, { seconds }]) => (descends(pid) ? sum + seconds : sum), 0);
}

class FileTimes implements Reporter {
  readonly files: { file: string; seconds: number }[] = [];
  #before = treeSeconds();

  onTestModuleEnd(module: TestModule): void {
    const now = treeSeconds();
    this.files.push({ file: relative(process.cwd(), module.moduleId), seconds: now - this.#before });
    this.#before = now;
  }
}

const byFile = process.argv.includes('--by-file');
const times = new FileTimes();
const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2).filter((arg) => arg !== '--by-file')]);
const vitest = await startVitest('test', filter, {
  ...options,
  watch: false,
  ...(byFile && { fileParallelism: false, reporters: ['default', times] }),
});
await vitest.close();

for (const { file, seconds } of times.files.toSorted((a, b) => b.seconds - a.seconds).slice(0, EXPENSIVE))
  console.log(`${seconds.toFixed(1).padStart(8)} s  ${file}`);
console.log(`${treeSeconds().toFixed(1).padStart(8)} s  in all, user and system, children included`);

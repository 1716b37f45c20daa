// Runs the suite under the other versions of Node that Muster supports, and `muster up` to its first mirror; and sees an older one refused.
// usage: tsx scripts/other-nodes.ts [major]...
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nodeBinary, pathWith } from './node-binaries.js';
import { reportArguments } from './report-arguments.js';

const checkout = fileURLToPath(new URL('..', import.meta.url));

/**
 * 24 is the image's. It runs everything but what asks nothing of Node or PostgreSQL: the repository's own rules, and walks and budgets that are
 * computed without a socket, a file or a timer.
 */
const COMPUTED = /^test\/project\/|\/simulation\.test\.ts$|\/offset-simulation\.test\.ts$|\/budget\/finding\.test\.ts$/;

/**
 * Between 20 and 24, 22 can differ in little. It runs what starts and stops processes, which is where versions do (signals, flags, module
 * loading), and what rests on Node's own HTTP server, sockets, TLS, buffers and timers.
 */
const OF_22 = [
  'test/process/start-stop.test.ts',
  'test/process/worker-death.test.ts',
  'test/process/up.test.ts',
  'test/process/private-authority.test.ts',
  'test/process/readiness.test.ts',
  'test/api/plumbing/server.test.ts',
  'test/api/plumbing/limits.test.ts',
  'test/api/plumbing/stopping.test.ts',
  'test/api/runs/run-events.test.ts',
  'test/api/plumbing/unreadable.test.ts',
  'test/http/api-client.test.ts',
  'test/http/exchange.test.ts',
  'test/http/http-client.test.ts',
  'test/core/',
  'test/db/tables/named-locks.test.ts',
  'test/db/statements/binary-rows.test.ts',
  'test/db/schema/migrate.test.ts',
  'test/db/connection/pooled-step.test.ts',
  'test/db/connection/transaction.test.ts',
  'test/walks/shared-commit.test.ts',
];

const SUITES: Readonly<Record<string, readonly string[]>> = {
  '24': testFiles().filter((file) => !COMPUTED.test(file)),
  '22': testFiles().filter((file) => OF_22.some((chosen) => file.startsWith(chosen))),
};

/** What a newcomer waits for, and deployments of several processes. */
const CONFIGURATIONS: Readonly<Record<string, string>> = {
  suite: 'vitest.config.ts',
  processes: 'vitest.processes.config.ts',
};

const { positionals: asked } = parseArgs({ allowPositionals: true });
refuseOld(nodeBinary('20-18'));
for (const chosen of OF_22) if (!SUITES['24']!.some((file) => file.startsWith(chosen))) throw new Error(`${chosen} is gone`);
for (const [major, files] of Object.entries(SUITES)) {
  if (asked.length > 0 && !asked.includes(major)) continue;
  const node = nodeBinary(major);
  console.log(`\n# Node ${major}: ${version(node)}`);
  await firstMirror(node);
  runTests(node, major, files);
}

/** Every test file, by its path in the checkout. Those of other suites are in none of the configurations, and stay out. */
function testFiles(): string[] {
  const found = readdirSync(path.join(checkout, 'test'), { recursive: true, encoding: 'utf8' });
  const own = found.filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'));
  return own.map((file) => path.posix.join('test', file));
}

function version(node: string): string {
  return spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
}

/** Whatever is started finds this Node in its PATH. */
function environment(node: string, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  return { ...process.env, PATH: pathWith(node), ...more };
}

function runTests(node: string, major: string, files: readonly string[]): void {
  const failed = Object.entries(CONFIGURATIONS).filter(([name, config]) => {
    console.log(`# ${version(node)}: ${name}`);
    const report = reportArguments(`Node ${major}, ${name}`);
    const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', config, ...files, ...report];
    return spawnSync(node, args, { cwd: checkout, stdio: 'inherit', env: environment(node) }).status !== 0;
  });
  if (failed.length > 0) throw new Error(`tests failed under ${version(node)}`);
}

function refuseOld(node: string): void {
  const { status, stderr } = spawnSync(node, ['bin/muster', '--version'], { cwd: checkout, encoding: 'utf8' });
  if (status !== 2 || !/needs Node 20\.19.*this is v20\.18/.test(stderr))
    throw new Error(`Node ${version(node)} was not refused in words: ${stderr}`);
  console.log(`# ${version(node)} is refused: ${stderr.trim()}`);
}

/** `muster up` with nothing set, until its sandbox is mirrored, and its end. */
async function firstMirror(node: string): Promise<void> {
  const home = mkdtempSync(path.join(tmpdir(), 'muster-node-'));
  const began = Date.now();
  const up = spawn(node, ['bin/muster', 'up', '--json'], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment(node, { MUSTER_HOME: home, PORT: '0' }),
  });
  try {
    let output = '';
    for await (const text of up.stdout.setEncoding('utf8')) {
      output += text as string;
      // Its last line, behind those of the runs.
      if (output.includes('admin_token_file')) break;
    }
    if (!output.includes('admin_token_file') || !output.includes('"succeeded"'))
      throw new Error(`muster up ended early: ${output}`);
    const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${up.pid}/status`, 'utf8'))!;
    console.log(`# first mirror after ${Date.now() - began} ms, in ${Math.round(Number(kilobytes) / 1024)} MB`);
  } finally {
    const ended = up.exitCode === null ? once(up, 'exit') : undefined;
    up.kill('SIGTERM');
    await ended;
    rmSync(home, { recursive: true, force: true });
  }
  if (up.exitCode !== 0) throw new Error(`muster up ended with ${up.exitCode ?? up.signalCode}`);
  if (readdirSync(path.join(checkout, 'dist/.compile-cache')).every((folder) => !folder.startsWith(version(node))))
    throw new Error('no compiled code was kept for the next start');
}

import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentOf, type Stage } from './replay.js';

const START_SECONDS = 300;

/** What the image is configured with, for whichever user runs it. Nobody asks the service anything. */
const SETTINGS = {
  MUSTER_ADMIN_TOKEN: randomBytes(24).toString('base64url'),
  MUSTER_ENCRYPTION_KEYS: `replay:${randomBytes(32).toString('base64')}`,
  TEST_BASE_URL: 'https://api.invalid',
  TEST_AUTH_URL: 'https://login.invalid',
  TEST_CLIENT_ID: 'replay',
  TEST_CLIENT_SECRET: randomBytes(24).toString('base64url'),
  TEST_REDIRECT_URI: 'https://muster.invalid/oauth/callback',
};

/** A platform that chooses the user itself takes one of a large number, whom no file of the image knows, and group 0. */
const ANY_USER = { uid: 1_000_700_000, gid: 0 };

/** The roles that the image may be started in. Each answers to the image's one HEALTHCHECK. */
const ROLES = ['api', 'worker', 'up'];

/** Tries what the Dockerfile's last stage would run as an image. Throws on the first thing that does not work. */
export async function tryImage(stage: Stage, databaseUrl: string): Promise<void> {
  if (!/^[1-9]\d*$/.test(stage.user)) throw new Error('the image must name its user by a number that is not 0');
  if (!ROLES.includes(stage.command[0] ?? '')) throw new Error('CMD names no role that listens');
  await tryAs({ uid: Number(stage.user), gid: Number(stage.user) }, stage, databaseUrl);
  if (process.getuid?.() === 0) await tryAs(ANY_USER, stage, databaseUrl);
  else console.log('\n# not root: not tried as another user');
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

async function tryAs(user: User, stage: Stage, databaseUrl: string): Promise<void> {
  const [program, ...first] = stage.entrypoint;
  if (program === undefined) throw new Error('the image has no ENTRYPOINT');
  const entrypoint = path.join(stage.root, program);
  const probePort = await freePort();
  const env = {
    ...environmentOf(stage),
    HOME: '/', // what an engine sets for a user whom /etc/passwd does not have
    DATABASE_URL: databaseUrl,
    PORT: String(await freePort()),
    PROBE_PORT: String(probePort),
    ...SETTINGS,
  };
  const options = { cwd: path.join(stage.root, stage.workdir), env, ...(process.getuid?.() === 0 && user) };
  const inherited = { ...options, stdio: ['ignore', 'inherit', 'inherit'] as StdioOptions };
  const healthy = () => {
    const [shell = '', ...args] = stage.healthcheck;
    return spawnSync(shell, args, options).status === 0;
  };

  console.log(`\n# user ${user.uid}, group ${user.gid}`);
  const home = path.join(stage.root, stage.env['MUSTER_HOME'] ?? '');
  const writes = `require('fs').writeFileSync(${JSON.stringify(path.join(home, 'probe'))}, '', { flag: 'w' })`;
  if (spawnSync('node', ['-e', writes], inherited).status !== 0) throw new Error(`user ${user.uid} cannot write MUSTER_HOME`);
  rmSync(path.join(home, 'probe'));
  // Exports to S3 are part of the image.
  const sdk = "import('@aws-sdk/client-s3').then(() => import('@aws-sdk/lib-storage'))";
  if (spawnSync('node', ['-e', sdk], inherited).status !== 0) throw new Error('the image has no SDK for S3');

  for (const args of [['--version'], ['--help'], ['migrate']]) {
    console.log(`\n# ${program} ${args.join(' ')}`);
    const { status, error } = spawnSync(entrypoint, [...first, ...args], inherited);
    if (error) throw error;
    if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}`);
  }
  for (const role of ROLES) {
    console.log(`\n# ${program} ${role}`);
    if (healthy()) throw new Error('HEALTHCHECK is content although nothing runs');
    const image: ChildProcess = spawn(entrypoint, [...first, role], inherited);
    try {
      await until(healthy, image);
      console.log('healthy');
    } finally {
      await stop(image);
    }
    if (image.exitCode !== 0) throw new Error(`${program} ${role} ended with ${image.exitCode ?? image.signalCode} on SIGTERM`);
  }
}

async function until(healthy: () => boolean, image: ChildProcess): Promise<void> {
  const end = performance.now() + START_SECONDS * 1000;
  while (!healthy()) {
    if (image.exitCode !== null || image.signalCode !== null) throw new Error('the image ended before it was healthy');
    if (performance.now() > end) throw new Error(`HEALTHCHECK is not content after ${START_SECONDS} s`);
    await sleep(200);
  }
}

async function stop(image: ChildProcess): Promise<void> {
  if (image.exitCode !== null || image.signalCode !== null) return;
  const exit = once(image, 'exit');
  image.kill('SIGTERM');
  const impatience = setTimeout(() => image.kill('SIGKILL'), 20_000);
  await exit;
  clearTimeout(impatience);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentOf, type Stage } from './replay.js';

const START_SECONDS = 60;

/** The service that the image is configured for; nobody asks it anything. */
const SERVICE = {
  TEST_BASE_URL: 'https://api.invalid',
  TEST_AUTH_URL: 'https://login.invalid',
  TEST_CLIENT_ID: 'replay',
  TEST_CLIENT_SECRET: randomBytes(24).toString('base64url'),
  TEST_REDIRECT_URI: 'https://muster.invalid/oauth/callback',
};

/** Tries what the Dockerfile's last stage would run as an image. Throws on the first thing that does not work. */
export async function tryImage(stage: Stage, databaseUrl: string): Promise<void> {
  if (['root', '0'].includes(stage.user)) throw new Error('the image runs as root');
  const [program, ...first] = stage.entrypoint;
  if (program === undefined) throw new Error('the image has no ENTRYPOINT');
  const entrypoint = path.join(stage.root, program);
  const cwd = path.join(stage.root, stage.workdir);
  const env = {
    ...environmentOf(stage),
    DATABASE_URL: databaseUrl,
    PORT: String(await freePort()),
    MUSTER_ADMIN_TOKEN: randomBytes(24).toString('base64url'),
    MUSTER_ENCRYPTION_KEYS: `replay:${randomBytes(32).toString('base64')}`,
    ...SERVICE,
  };
  const healthy = () => {
    const [shell = '', ...args] = stage.healthcheck;
    return spawnSync(shell, args, { env }).status === 0;
  };

  for (const args of [['--version'], ['--help'], ['migrate']]) {
    console.log(`\n# ${program} ${args.join(' ')}`);
    const { status, error } = spawnSync(entrypoint, [...first, ...args], { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
    if (error) throw error;
    if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}`);
  }

  console.log(`\n# ${program} ${stage.command.join(' ')}`);
  if (healthy()) throw new Error('HEALTHCHECK is content although nothing runs');
  const image = spawn(entrypoint, [...first, ...stage.command], { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  try {
    await until(healthy, image);
    console.log('healthy');
  } finally {
    await stop(image);
  }
  if (image.exitCode !== 0)
    throw new Error(`${program} ${stage.command.join(' ')} ended with ${image.exitCode ?? image.signalCode} on SIGTERM`);
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

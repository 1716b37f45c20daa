// Builds what the Dockerfile builds, without a container engine, and tries it. With DATABASE_URL on that (empty) database, else
// on an embedded one.
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startEmbeddedServer } from '../src/embedded/embedded-server.js';
import { createLogger } from '../src/observability/logger.js';
import { replay } from './docker/replay.js';
import { tryImage } from './docker/trial.js';

const target = mkdtempSync(path.join(tmpdir(), 'muster-image-'));
chmodSync(target, 0o755); // the image runs as another user
try {
  const stage = replay(fileURLToPath(new URL('..', import.meta.url)), target);
  await withDatabase((url) => tryImage(stage, url));
  const packages = path.join(stage.root, stage.workdir, 'node_modules');
  console.log(`\nThe image works. node_modules: ${megabytes(packages)} MB, with what is around it: ${megabytes(stage.root)} MB.`);
} finally {
  rmSync(target, { recursive: true, force: true });
}

async function withDatabase(work: (url: string) => Promise<void>): Promise<void> {
  if (process.env.DATABASE_URL) return work(process.env.DATABASE_URL);
  const home = mkdtempSync(path.join(tmpdir(), 'muster-replay-'));
  const server = await startEmbeddedServer({ home, logger: createLogger({ level: 'warn' }) });
  try {
    await work(server.url);
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

function megabytes(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.round(files.reduce((sum, { parentPath, name }) => sum + statSync(path.join(parentPath, name)).size, 0) / 1e6);
}

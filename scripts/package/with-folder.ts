import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Hands an empty folder to `work`, and removes it. Other accounts may pass through it, as through a home folder of Debian's. */
export async function withFolder<T>(work: (folder: string) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(realpathSync(tmpdir()), 'muster-package-'));
  chmodSync(folder, 0o755);
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

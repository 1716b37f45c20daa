import { randomBytes } from 'node:crypto';
import { chmod, link, readFile, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder, unusableHome } from './make-folder.js';
import { Secret } from './secret.js';

/**
 * The secret kept in a file that only its owner may read; made by `generate` when there is none. Two processes that
 * start at once end up with the same one: the file appears whole, and the first to put it there wins. Throws
 * `invalid_configuration` where it can be neither read nor kept.
 */
export async function keptSecret(path: string, generate: () => string): Promise<Secret> {
  const kept = await read(path);
  if (kept) return kept;
  makeFolder(dirname(path));
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${generate()}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
  return (await read(path)) as Secret;
}

async function read(path: string): Promise<Secret | undefined> {
  try {
    return new Secret((await readFile(path, 'utf8')).trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusableHome(`${path} cannot be read`, error);
  }
}

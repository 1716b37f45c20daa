import { createHash, randomBytes } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { MusterError } from '../../../core/errors.js';
import { type Destination, type DestinationKind, MANIFEST_SUFFIX, SIGNED_MANIFEST_SUFFIX } from './destination.js';

/** Exports hold personal data: only the user who exports may read them. */
const PRIVATE_MODE = 0o600;

/** Another machine or container is taken to have given up a temporary file that it has not written to for so long. */
const ABANDONED_MS = 24 * 3_600_000;

const PART = '.part';

/** The temporary files that this process uses. Its process id alone says nothing: a container that was started again has the same. */
const inUse = new Set<string>();

/** Any address without a scheme of another kind is a path. `folderFrom` refuses schemes, which are typing errors more often than names of folders. */
export const fileKind: DestinationKind = {
  fileAddress: 'file',
  folderAddress: 'a directory that all workers share',
  folderFrom: (text) => (/^[A-Za-z][A-Za-z0-9+.-]+:/.test(text) ? undefined : resolve(text)),
  open: async (address, { mode, makesFolder }) => {
    if (makesFolder) await makeFolder(dirname(address));
    return openFileDestination(address, mode);
  },
};

/**
 * Writes a file under a temporary name in the same folder, and gives it its final name at the end, which replaces an earlier file in one step. First
 * removes temporary files that killed exports of this file left there. Throws `export_failed` for a folder or a file that cannot be written.
 */
export async function openFileDestination(output: string, mode = PRIVATE_MODE): Promise<Destination> {
  const path = await withFileErrors(output, () => finalPath(output));
  const folder = dirname(path);
  const family = `.muster-${createHash('sha256').update(basename(path)).digest('hex').slice(0, 12)}-`;
  await withFileErrors(output, () => removeAbandoned(folder, family));
  const temporary = join(folder, `${family}${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}${PART}`);
  const manifestPath = `${temporary.slice(0, -PART.length)}.manifest${PART}`;
  const signedPath = `${temporary.slice(0, -PART.length)}.signed${PART}`;
  const files = [temporary, manifestPath, signedPath];
  for (const file of files) inUse.add(file);
  const create = async (file: string) => {
    const handle = await open(file, 'wx', PRIVATE_MODE);
    await handle.chmod(mode);
    return handle;
  };
  const createWhole = async (name: string, text: string) => {
    const handle = await create(name);
    await handle.writeFile(text);
    await syncAndClose(handle);
  };
  const file = await withFileErrors(output, () => create(temporary));
  return {
    name: basename(path),
    write: (bytes) => withFileErrors(output, () => file.writeFile(bytes)),
    finish: ({ text, signed }) =>
      withFileErrors(output, async () => {
        await syncAndClose(file);
        await createWhole(manifestPath, text);
        if (signed !== undefined) await createWhole(signedPath, signed);
        // Synchronous, so that nothing else of this process comes between them. A signed manifest of an earlier export would describe another file.
        if (signed === undefined) rmSync(`${path}${SIGNED_MANIFEST_SUFFIX}`, { force: true });
        else renameSync(signedPath, `${path}${SIGNED_MANIFEST_SUFFIX}`);
        renameSync(manifestPath, `${path}${MANIFEST_SUFFIX}`);
        renameSync(temporary, path);
        await syncAndClose(await open(folder));
        for (const name of files) inUse.delete(name);
      }),
    abort: async () => {
      await file.close().catch(() => {});
      await Promise.all(files.map((name) => rm(name, { force: true }).catch(() => {})));
      for (const name of files) inUse.delete(name);
    },
  };
}

/** Makes a folder that only the user of the workers can read, as is true of its files. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    throw new MusterError(
      'export_failed',
      `The folder ${path} cannot be made (${code}). Give the user of the workers the right to write to EXPORT_TO.`,
      { cause },
    );
  }
}

/** Throws where the path is taken by something that is no file. A symbolic link is refused, too: in a folder that others may write to, it could lead to any file of ours. */
async function finalPath(output: string): Promise<string> {
  const path = resolve(output);
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!found) return path;
  if (found.isSymbolicLink())
    throw new MusterError(
      'export_failed',
      `${output} is a symbolic link. Name the file that it leads to, ${await realpath(path).catch(() => 'which is not there')}.`,
    );
  if (!found.isFile())
    throw new MusterError('export_failed', `${output} is no file. Name a file, or write to standard output with --output -.`);
  return path;
}

async function removeAbandoned(folder: string, family: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(family) && name.endsWith(PART));
  for (const name of names) if (await isAbandoned(join(folder, name), name.slice(family.length))) await rm(join(folder, name));
}

async function isAbandoned(path: string, owner: string): Promise<boolean> {
  if (inUse.has(path)) return false;
  const [, host, pid] = /^(.*)-(\d+)-[0-9a-f]{8}(?:\.manifest|\.signed)?\.part$/.exec(owner) ?? [];
  if (host === hostname()) return Number(pid) === process.pid || !isAlive(Number(pid));
  return Date.now() - (await stat(path)).mtimeMs > ABANDONED_MS;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function syncAndClose(file: FileHandle): Promise<void> {
  await file.sync();
  await file.close();
}

async function withFileErrors<T>(output: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MusterError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new MusterError(
      'export_failed',
      `${output} cannot be written (${code}). ${ADVICE[code] ?? ''}What stood there stays as it was.`,
      {
        cause: error,
      },
    );
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'Make its folder first. ',
  EACCES: 'Give this user the right to write there, to the folder too. ',
  EPERM: 'Give this user the right to write there, to the folder too. ',
  EROFS: 'The file system is mounted for reading only. ',
  ENOSPC: 'The disk is full: make room, or export to another one. ',
  EDQUOT: 'The quota is used up: make room, or export elsewhere. ',
};

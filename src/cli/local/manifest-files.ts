import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CheckedManifest, Finding } from '../../certificates/check.js';
import { UsageFailure } from '../exit-code.js';

interface FilesOutcome {
  readonly findings: readonly Finding[];
  /** Say which files were compared, or were missing. */
  readonly notes: readonly string[];
}

const SIGNED = /\.jws$/;

/**
 * Compares a signed manifest with the files in its folder: the file that it names, and the manifest without a signature. `path`: the path of
 * the signed manifest. A missing file is no fault, and becomes a note.
 */
export async function checkFiles({ where, manifest, text }: CheckedManifest, path: string): Promise<FilesOutcome> {
  const findings: Finding[] = [];
  const notes: string[] = [];
  const { file } = manifest;
  // A name with a path would lead out of the folder, and is ignored.
  if (file !== undefined && file === basename(file)) {
    const sha256 = await hashOf(join(dirname(path), file));
    if (sha256 === undefined) notes.push(`${where}: ${file} is not in its folder, so its bytes were not compared.`);
    else if (sha256 === manifest.sha256) notes.push(`${where}: ${file} is the file that it names, byte for byte.`);
    else findings.push({ where, problem: `names ${file} with the sha256 ${manifest.sha256}, but the file has ${sha256}` });
  } else notes.push(`${where}: it names no file in its folder, so no bytes were compared.`);
  const plain = path.replace(SIGNED, '.json');
  const unsigned = plain === path ? undefined : await unlessMissing(plain, () => readFile(plain, 'utf8'));
  if (unsigned !== undefined && unsigned !== text)
    findings.push({ where, problem: `is signed, but ${plain} says something else` });
  return { findings, notes };
}

/** SHA-256 in hex; undefined if the file does not exist. */
async function hashOf(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  return unlessMissing(path, async () => {
    await pipeline(createReadStream(path), hash);
    return hash.digest('hex');
  });
}

async function unlessMissing<T>(path: string, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new UsageFailure(`${path} cannot be read (${code}).`, { cause });
  }
}

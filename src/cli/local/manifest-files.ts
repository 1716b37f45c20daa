import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CheckedManifest, Finding } from '../../certificates/check.js';
import { UsageFailure } from '../exit-code.js';

interface FilesOutcome {
  readonly findings: readonly Finding[];
  /** The files that were compared, or were not there to be. */
  readonly notes: readonly string[];
}

const SIGNED = /\.jws$/;

/**
 * Holds what stands in the folder of a signed manifest against it: the file that it names, and the manifest without a signature. `path`: that of the signed
 * one. A file that is not there is no fault, and is said.
 */
export async function checkFiles({ where, manifest, text }: CheckedManifest, path: string): Promise<FilesOutcome> {
  const findings: Finding[] = [];
  const notes: string[] = [];
  const { file } = manifest;
  // A name that leads out of the folder names no file of it.
  if (file !== undefined && file === basename(file)) {
    const sha256 = await hashOf(join(dirname(path), file));
    if (sha256 === undefined) notes.push(`${where}: ${file} is not beside it, so its bytes were not compared.`);
    else if (sha256 === manifest.sha256) notes.push(`${where}: ${file} is the file that it names, byte for byte.`);
    else findings.push({ where, problem: `names ${file} by the sha256 ${manifest.sha256}, and the file has ${sha256}` });
  } else notes.push(`${where}: it names no file beside it, so that no bytes were compared.`);
  const plain = path.replace(SIGNED, '.json');
  const beside = plain === path ? undefined : await contentsOf(plain);
  if (beside !== undefined && beside !== text) findings.push({ where, problem: `is signed, and ${plain} says something else` });
  return { findings, notes };
}

/** SHA-256 in hex; undefined where there is no such file. */
async function hashOf(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  return unlessMissing(path, async () => {
    await pipeline(createReadStream(path), hash);
    return hash.digest('hex');
  });
}

function contentsOf(path: string): Promise<string | undefined> {
  return unlessMissing(path, () => readFile(path, 'utf8'));
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

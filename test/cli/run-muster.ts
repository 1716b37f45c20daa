import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

const MUSTER = fileURLToPath(new URL('../../bin/muster', import.meta.url));

/** A folder for MUSTER_HOME, gone after the test file. */
export const HOME = mkdtempSync(path.join(tmpdir(), 'muster-cli-'));
afterAll(() => rmSync(HOME, { recursive: true }));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as one JSON object a line. */
  // oxlint-disable-next-line typescript/no-explicit-any
  json(): any[];
}

/** Runs a command to its end, with nothing of our environment but PATH; `input` is its standard input. */
export async function runMuster(args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<Outcome> {
  const child = spawn(process.execPath, [MUSTER, ...args], { env: { PATH: process.env.PATH, MUSTER_HOME: HOME, ...env } });
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  // A command that does not read its input may be gone before it was written.
  child.stdin.on('error', () => {}).end(input);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const json = () =>
    stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return { code, stdout, stderr, json };
}

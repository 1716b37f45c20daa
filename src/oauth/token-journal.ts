import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, type FileHandle, link, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type CompanyKey, ENVIRONMENTS, keyText, logFieldsOf, parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { removedSince } from '../db/tables/audit.js';
import { NamedLocks } from '../db/tables/named-locks.js';
import type { Logger } from '../observability/logger.js';
import type { Vault } from './vault.js';

/** A line of the journal: a company has received a refresh token, or was removed. */
export interface JournalEntry extends CompanyKey {
  /** `databaseTime` before the request to the service. An entry is newer than a stored pair if this is later than the time when the pair was stored. */
  readonly at: string;
  /** Encrypted; null: the company was removed. */
  readonly refreshToken: string | null;
  /** `at` of the last entry in the journal that came from an authorization; undefined if all came from refreshes. */
  readonly authorizedAt?: string | undefined;
}

interface JournalDependencies {
  readonly db: Database;
  readonly vault: Vault;
  readonly logger: Logger;
}

/** Only the owner may read or write the file. */
const MODE = 0o600;

const TIME = z.string().refine((text) => Number.isFinite(Date.parse(text)));

const LINE = z
  .object({
    environment: z.enum(ENVIRONMENTS),
    company_id: z.string().transform((text, context) => parseCompanyId(text) ?? (context.addIssue('no GUID'), z.NEVER)),
    at: TIME,
    refresh_token: z.string().nullable(),
    authorized_at: TIME.optional(),
  })
  .transform(({ company_id: companyId, refresh_token: refreshToken, authorized_at: authorizedAt, ...entry }): JournalEntry => {
    return { ...entry, companyId, refreshToken, authorizedAt };
  });

const COMPACTION_MS = 3_600_000;
/** How long a token waits for its line. A hanging disk must not keep it from the database until the lease has ended. */
const PATIENCE_MS = 2_000;

/**
 * The file of TOKEN_JOURNAL. It holds every current refresh token that a process of this host received, so that a restored backup can be brought up to date. A line is
 * on the disk before its token is used. It begins with a line feed, so that a line cut off by a crash or a full disk spoils no other.
 *
 * Compaction keeps the newest entry of each company. Only one process of a host does it at a time, under a lock in the database: it gives the file a second name, `<file>.old`,
 * replaces it by a new file, and copies the lines that were appended to the old one until then. A writer checks afterwards that the file still has its name, and otherwise appends again.
 */
export class TokenJournal implements Service {
  readonly name = 'token journal';
  #path: string;
  readonly #deps: JournalDependencies;
  readonly #locks: NamedLocks;
  readonly #compaction = new PeriodicTask(COMPACTION_MS, () => this.#compactOrWarn());

  constructor(path: string, deps: JournalDependencies) {
    this.#path = path;
    this.#deps = deps;
    this.#locks = new NamedLocks(deps.db.pool);
  }

  /** Throws `invalid_configuration` if the file cannot be written. */
  async start(): Promise<void> {
    try {
      const file = await open(this.#path, 'a', MODE);
      await file.chmod(MODE).finally(() => file.close());
      // Compaction must replace the file itself, and not a link to it.
      this.#path = await realpath(this.#path);
      await access(dirname(this.#path), constants.W_OK);
      await flushFolder(this.#path);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new MusterError(
        'invalid_configuration',
        `TOKEN_JOURNAL: the file cannot be written (${code}). Make its folder, and let this user write there.`,
        { cause },
      );
    }
    await this.#compactOrWarn();
    this.#compaction.start();
  }

  async stop(): Promise<void> {
    await this.#compaction.stop();
  }

  /**
   * Resolves when the entry is on the disk, or after two seconds. Never throws, because the database has the token, too, and an error would lose it.
   * `refreshToken`: null if the company was removed. `isAuthorization`: the token came from an authorization and not from a refresh.
   */
  async append(
    company: CompanyKey,
    at: string,
    refreshToken: Secret | null,
    { isAuthorization = false }: { isAuthorization?: boolean } = {},
  ): Promise<void> {
    const sealed = refreshToken && this.#deps.vault.sealRefresh(company, refreshToken);
    const late = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => Promise.reject(new Error('the disk does not answer')));
    try {
      await Promise.race([
        this.#write(lineOf({ ...company, at, refreshToken: sealed, authorizedAt: isAuthorization ? at : undefined })),
        late,
      ]);
    } catch (error) {
      this.#deps.logger.error({ err: error, ...logFieldsOf(company) }, 'an entry could not be written to TOKEN_JOURNAL in time');
    } finally {
      late.catch(() => {});
    }
  }

  /** Keeps only the newest entry of each company, encrypted with the first key, or its removal. Does nothing while another process compacts. */
  async compact(): Promise<void> {
    await this.#locks.run([`token journal ${hostname()} ${this.#path}`], () => this.#compactAlone());
  }

  async #compactAlone(): Promise<void> {
    const [old, next] = [`${this.#path}.old`, `${this.#path}.${randomUUID()}.new`];
    const left = await readFile(old, 'utf8').catch(unlessMissing);
    if (left !== undefined) {
      // A process died during compaction.
      await this.#write(left);
      await rm(old);
    }
    await link(this.#path, old);
    const begun = wholeLines(await readFile(old));
    const file = await open(next, 'wx', MODE);
    try {
      await file.writeFile((await this.#newestOf(begun.toString('utf8'))).map(lineOf).join(''));
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(next, this.#path);
    await flushFolder(this.#path);
    const rest = (await readFile(old)).subarray(begun.length).toString('utf8');
    if (rest !== '') await this.#write(rest);
    await rm(old);
  }

  async #compactOrWarn(): Promise<void> {
    await this.compact().catch((error: unknown) =>
      this.#deps.logger.warn({ err: error }, 'TOKEN_JOURNAL could not be compacted'),
    );
  }

  async #newestOf(text: string): Promise<JournalEntry[]> {
    const { db, vault } = this.#deps;
    const newest = newestOfEach(readJournal(text).entries);
    const removed = await removedSince(db, newest);
    return newest.map((entry) => {
      if (entry.refreshToken === null || removed.has(keyText(entry)))
        return { ...entry, refreshToken: null, authorizedAt: undefined };
      return { ...entry, refreshToken: vault.sealAgain(entry, entry.refreshToken) };
    });
  }

  async #write(text: string): Promise<void> {
    for (;;) {
      const file = await open(this.#path, 'a', MODE);
      try {
        await file.appendFile(text);
        await file.datasync();
        if (await isStillAt(this.#path, file)) return;
      } finally {
        await file.close();
      }
    }
  }
}

/**
 * The texts of a journal and of the file left by an interrupted compaction. Complete even during a compaction: lines that move from one file to the other are in a
 * later text.
 */
export async function readJournalFile(path: string): Promise<string> {
  const texts = [];
  for (const file of [`${path}.old`, path, `${path}.old`, path]) {
    const text = file === path ? await readFile(file, 'utf8') : await readFile(file, 'utf8').catch(unlessMissing);
    texts.push(text ?? '');
  }
  return texts.join('\n');
}

/** The entries of a file, in its order. Equal lines count once. `torn`: the number of lines that are no entries. */
export function readJournal(text: string): { readonly entries: JournalEntry[]; readonly torn: number } {
  const lines = [...new Set(text.split('\n'))].filter((line) => line !== '');
  const entries = lines.map(readLine).filter((entry) => entry !== undefined);
  return { entries, torn: lines.length - entries.length };
}

export function newestOfEach(entries: readonly JournalEntry[]): JournalEntry[] {
  const newest = new Map<string, JournalEntry>();
  for (const entry of entries) {
    const known = newest.get(keyText(entry));
    const newer = !known || Date.parse(known.at) <= Date.parse(entry.at) ? entry : known;
    newest.set(keyText(entry), { ...newer, authorizedAt: later(known?.authorizedAt, entry.authorizedAt) });
  }
  return [...newest.values()];
}

function later(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Date.parse(one) < Date.parse(other) ? other : one;
}

function readLine(line: string): JournalEntry | undefined {
  try {
    return LINE.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function lineOf({ environment, companyId, at, refreshToken, authorizedAt }: JournalEntry): string {
  const entry = { environment, company_id: companyId, at, refresh_token: refreshToken, authorized_at: authorizedAt };
  return `\n${JSON.stringify(entry)}\n`;
}

function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

async function isStillAt(path: string, file: FileHandle): Promise<boolean> {
  const [named, ours] = [await stat(path).catch(() => undefined), await file.stat()];
  return named?.ino === ours.ino && named.dev === ours.dev;
}

/** Makes the name of the file survive a loss of power. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

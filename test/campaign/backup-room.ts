import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomOf } from '../pagers/shifting-list.js';
import { Installation } from '../process/installation.js';
import { BackupServer } from '../support/backup-server.js';
import type { Random } from './draw.js';
import { shareOf } from './share.js';

const FIRST_SEED = Number(process.env.FIRST_SEED ?? 1);
/** `FIRST_SEED` draws other companies and moments. */
export const SEEDS = Array.from({ length: shareOf(5) }, (_, n) => FIRST_SEED + n);
/** How old a backup is: refreshes of each company since. */
export const ROTATIONS = Number(process.env.RESTORE_ROTATIONS ?? 200);
/** For how long nothing may be lost after a restore. */
export const SETTLE_MS = 1_000 * Number(process.env.RESTORE_SETTLE_SECONDS ?? 20);

export const randomOfSeed = (seed: number): Random => randomOf(seed * 104_729);

/** Installations that are backed up once every company is synced. Debian's pg_dump and pg_restore do it, as users have them. */
export class BackupRoom {
  #installation: Installation | undefined;

  private constructor(readonly backups: BackupServer) {}

  static async open(): Promise<BackupRoom> {
    return new BackupRoom(await BackupServer.start());
  }

  async close(): Promise<void> {
    await this.backups.server.remove();
  }

  /** One installation at a time: `uninstall` closes it. */
  async install({ random, journal }: { random: Random; journal: boolean }): Promise<Installation> {
    const companies = Array.from({ length: 6 + random(6) }, (_, n) => ({ name: `C${n}`, employees: 5 + random(60) }));
    const installation = await Installation.open({ database: await this.backups.database(), companies, journal });
    this.#installation = installation;
    await this.backups.dump(installation.databaseUrl, this.fileOf(installation));
    return installation;
  }

  async uninstall(): Promise<void> {
    await this.#installation?.close();
    this.#installation = undefined;
  }

  /** Where its backup is. */
  fileOf({ deployment }: Installation): string {
    return join(deployment.home, 'muster.dump');
  }

  async restoreInPlace(installation: Installation): Promise<void> {
    await this.backups.restoreInPlace(installation.databaseUrl, this.fileOf(installation));
  }

  /** Restores the backup into a new database, and returns its address. */
  async restoreElsewhere(installation: Installation): Promise<string> {
    const url = await this.backups.emptyPlace();
    await this.backups.restore(url, this.fileOf(installation));
    return url;
  }

  /**
   * Its processes end, and start again on the backup in a new database, which a person has not adopted yet. Returns how many companies it has lost, and
   * what it has asked the service.
   */
  async moveToBackup(installation: Installation): Promise<{ lost: number; asked: readonly string[] }> {
    const { requests } = installation.deployment.sandbox;
    await installation.stop();
    requests.clear();
    installation.databaseUrl = await this.restoreElsewhere(installation);
    await installation.start();
    await installation.issue('database_copied');
    await sleep(SETTLE_MS);
    return { lost: await installation.lost(), asked: requests.all().map(({ path }) => path) };
  }
}

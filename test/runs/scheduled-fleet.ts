import { pino } from 'pino';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { dueSyncs } from '../../src/runs/list-syncs.js';
import { Runs } from '../../src/runs/runs.js';
import type { Schedule } from '../../src/runs/schedule.js';
import { companyIdOf } from '../support/company-ids.js';
import { notQuiet } from '../support/quiet.js';

export const NIGHT: Schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };

/** A catalogue of these lists; a schedule of null is the night. */
export function catalogueOf(schedules: Readonly<Record<string, string | null>>): Catalogue {
  const entryOf = (name: string, schedule: string | null) => ({
    method: 'GET',
    path: `/api/companies/{company_id}/${name}`,
    pager: { style: 'skip-take', size: 5 },
    ...(schedule !== null && { schedule }),
  });
  const entries = Object.entries(schedules).map(([name, schedule]) => [name, entryOf(name, schedule)]);
  return validateCatalogue(Object.fromEntries(entries), 'a test');
}

/** A run that is offered to workers. */
export interface StartedRun extends CompanyKey {
  readonly id: string;
  readonly trigger: string;
  readonly resources: readonly string[];
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Companies and the sweeps of a worker, in a time of its own: the tests say when it is, and both the process and PostgreSQL believe it. Nothing walks: a
 * test ends runs. The time has to be later than the real one, which is the default of columns.
 */
export class ScheduledFleet {
  readonly db: Database;
  #now = 0;
  #companies = 0;
  readonly #clock = { now: () => this.#now, monotonic: () => this.#now, sleep: async () => {} };

  private constructor(db: Database) {
    this.db = db;
  }

  /**
   * `url`: a database of its own, in whose new sessions now() is the time of a table: a function that is found before PostgreSQL's. `through`: another
   * address of it.
   */
  static async open(url: string, through = url): Promise<ScheduledFleet> {
    const db = openDatabase({ url });
    await db.pool.query(`
      CREATE SCHEMA told;
      CREATE TABLE told.clock (at timestamptz);
      CREATE FUNCTION told.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM told.clock'`);
    await db.pool.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = told, pg_catalog, public`);
    await db.close();
    return new ScheduledFleet(openDatabase({ url: through }));
  }

  get now(): number {
    return this.#now;
  }

  async set(now: number | string): Promise<void> {
    this.#now = typeof now === 'number' ? now : Date.parse(now);
    await this.db.pool.query('DELETE FROM told.clock');
    await this.db.pool.query('INSERT INTO told.clock VALUES ($1)', [new Date(this.#now)]);
  }

  async pass(minutes: number): Promise<void> {
    await this.set(this.#now + minutes * 60_000);
  }

  /** The ids of companies, which give their places in the night, are the same in every run of a test file. */
  async onboard(count: number, state: { paused?: boolean; reauthorizationReason?: string } = {}): Promise<CompanyKey[]> {
    const companies = Array.from({ length: count }, (): CompanyKey => {
      this.#companies += 1;
      return { environment: 'test', companyId: companyIdOf(this.#companies) };
    });
    const createdAt = new Date(this.#now);
    await this.db.prisma.connection.createMany({ data: companies.map((company) => ({ ...company, ...state, createdAt })) });
    return companies;
  }

  runs(catalogue: Catalogue, schedule = NIGHT): Runs {
    return new Runs({
      db: this.db,
      catalogue,
      schedule,
      quiet: notQuiet,
      clock: this.#clock,
      dispatcher: { dispatch: async () => {} },
    });
  }

  /** The sweeps of a process that has just started. */
  worker(catalogue: Catalogue, schedule = NIGHT) {
    const deps = {
      db: this.db,
      runs: this.runs(catalogue, schedule),
      catalogue,
      schedule,
      clock: this.#clock,
      logger: pino({ enabled: false }),
    };
    const { startDueSyncs: nights, startDueLists: lists } = dueSyncs(deps);
    return { nights, lists };
  }

  /** The runs that workers would begin now or later. */
  async queued(): Promise<StartedRun[]> {
    const { rows } = await this.db.pool.query<Omit<StartedRun, 'at'>>(
      `SELECT r.id, r.environment, r.company_id AS "companyId", r.trigger, array_agg(w.resource ORDER BY w.position) AS resources
       FROM muster.runs r JOIN muster.walks w ON w.run_id = r.id WHERE r.status = 'queued' GROUP BY r.id ORDER BY r.seq`,
    );
    return rows.map((row) => ({ ...row, at: this.#now }));
  }

  /** Ends all runs. */
  async end(): Promise<void> {
    await this.db.pool.query(`
      WITH ended AS (
        UPDATE muster.runs SET status = 'succeeded', finished_at = now() WHERE status IN ('queued', 'running') RETURNING id)
      UPDATE muster.walks w SET status = 'succeeded', finished_at = now() FROM ended WHERE w.run_id = ended.id`);
  }

  /** Minutes until each list of a company is walked next. */
  async timesOf(company: CompanyKey): Promise<Record<string, number>> {
    const rows = await this.db.prisma.scheduledList.findMany({ where: company, orderBy: { resource: 'asc' } });
    return Object.fromEntries(rows.map(({ resource, nextSyncAt }) => [resource, (nextSyncAt.getTime() - this.#now) / 60_000]));
  }

  close(): Promise<void> {
    return this.db.close();
  }
}

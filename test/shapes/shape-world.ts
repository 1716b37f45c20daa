import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { schemaSweep } from '../../src/warehouse/schema-sweep.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { askedFor, syncHarness } from '../walks/sync-harness.js';
import type { HrShape } from './hr-shapes.js';
import { distorted, driftOf, type Members, peopleOf, type Staff, textOf } from './people.js';

const logger = pino({ level: 'silent' });
const PAGE = 500;
const token = new Secret('a.b.c');
const tokens: TokenSource = { get: async () => token, renew: async () => token, refused: async () => {} };

/** The text of a company's records on a night, by id. */
export function recordsOf(shape: HrShape, staff: Staff, night: number): Map<string, string> {
  const id = shape.entry.id.split('.');
  return new Map(
    peopleOf(staff, night).map((person) => {
      const record: Members = distorted(shape.record(person, driftOf(person)), person, id);
      return [shape.id(person.n), textOf(record)];
    }),
  );
}

export interface ShapeWorld {
  readonly database: TestDatabase;
  /** The address of the service, where it is reached over HTTP. */
  readonly serviceUrl: string;
  /** What the service has, by company. */
  readonly served: Map<string, Map<string, string>>;
  /** Lets the night come: the lists of all companies are walked and proved, and the sweeps of a worker learn of them. */
  pass(night: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * A database, and a service with one list in that shape. Walks, sweeps, views and feed are the real ones. `sockets`: the service is reached over HTTP; else
 * its pages come from memory.
 */
export async function shapeWorld(
  shape: HrShape,
  staffs: readonly Staff[],
  { sockets = false }: { sockets?: boolean } = {},
): Promise<ShapeWorld> {
  const database = await testDatabase();
  const { db } = database;
  const catalogue = validateCatalogue({ [shape.name]: entryOf(shape) }, 'test');
  const served = new Map<string, Map<string, string>>();
  const pageOf = (path: string, query: Readonly<Record<string, string>>) => {
    const all = [...served.get(path.split('/')[3]!)!.values()];
    const { skip, take } = askedFor({ query, body: undefined });
    return `{"data":[${all.slice(skip, skip + take).join()}],"totalRecords":${all.length}}`;
  };
  const service = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://service');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(pageOf(pathname, Object.fromEntries(searchParams)));
  });
  if (sockets) await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const serviceUrl = `http://127.0.0.1:${sockets ? (service.address() as AddressInfo).port : 1}/`;
  const harness = syncHarness(db, { url: new URL(serviceUrl), tokens }, catalogue.endpoints, {
    clock: hurriedClock,
    ...(!sockets && { respond: ({ path, query }) => pageOf(path, query!) }),
  });
  await ensureMirrorTables(db, catalogue);
  await ensureTypedViews(db, catalogue);
  const companies = new Map<string, CompanyKey>();
  return {
    database,
    serviceUrl,
    served,
    async pass(night) {
      for (const staff of staffs.filter(({ from }) => from <= night)) {
        served.set(staff.companyId, recordsOf(shape, staff, night));
        const company = companies.get(staff.companyId) ?? (await harness.onboard(staff.companyId));
        companies.set(staff.companyId, company);
        const { status, walks } = await harness.sync(company);
        const [walk] = walks;
        if (status !== 'succeeded' || !walk?.verified)
          throw new Error(`Night ${night} of ${shape.name}: ${status}, ${JSON.stringify(walk)}`);
        await learn(database, catalogue);
      }
    },
    async close() {
      await harness.close();
      if (sockets) await new Promise((resolve) => service.close(resolve));
      await database.close();
    },
  };
}

/** What the sweeps of a worker do, until nothing is left to do. */
async function learn({ db }: TestDatabase, catalogue: Catalogue): Promise<void> {
  await stampChanges(db);
  // Each sweep has the time that it wants: how quickly the log is counted is no part of this.
  for (let turn = 0; turn < 3; turn += 1) await schemaSweep({ db, catalogue, clock: { monotonic: () => turn }, logger })();
}

function entryOf(shape: HrShape): object {
  return {
    method: 'GET',
    path: `/api/companies/{company_id}/${shape.name}`,
    pager: { style: 'skip-take', in: 'query', size: PAGE },
    ...shape.entry,
    id: [shape.entry.id],
  };
}

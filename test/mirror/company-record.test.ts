import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeCompanyRecord } from '../../src/mirror/company-record.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { onboard } from './mirror-fixture.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

test.each(['[]', '"x"', 'null', '{"name":', 'canary <html>', '{"name":"\\u0000"}', ''])(
  'what is no record replaces none, and stands in no message: %s',
  async (text) => {
    const company = await onboard(database.db);
    await writeCompanyRecord(database.db, company, '{"name":"Nordlia","n":1}');
    const error = await writeCompanyRecord(database.db, company, text).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'malformed_response' });
    expect(JSON.stringify([String(error), error])).not.toContain('canary');
    expect(await database.db.prisma.company.findFirst({ where: company })).toMatchObject({ name: 'Nordlia', data: { n: 1 } });
  },
);

import type pg from 'pg';
import { allRelations, asGrantor } from './granting.js';

/** Schemas for readers. Nothing in them is secret; the views of `warehouse` show parts of the others with the rights of their owner. */
const SCHEMAS = ['mirror', 'warehouse'] as const;
type ReaderSchema = (typeof SCHEMAS)[number];

/**
 * Lets a role read these schemas, both what exists and what this user makes later. Throws `invalid_configuration` if there is no such role, or if the user
 * of `url` may not grant.
 */
export function grantReading(url: string, role: string, schemas: readonly ReaderSchema[] = SCHEMAS): Promise<void> {
  return asGrantor(url, role, (client, grantee) => readingGrants(client, grantee, schemas));
}

/** The statements that let a role, given by its quoted name, read these schemas, `warehouse` among them. */
export async function readingGrants(
  client: pg.Client,
  grantee: string,
  schemas: readonly ReaderSchema[] = SCHEMAS,
): Promise<readonly string[]> {
  const { tables } = await allRelations(client, schemas);
  const names = schemas.join(', ');
  return [
    `GRANT USAGE ON SCHEMA ${names} TO ${grantee}`,
    `GRANT SELECT ON TABLE ${tables.join(', ')} TO ${grantee}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA warehouse TO ${grantee}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${names} GRANT SELECT ON TABLES TO ${grantee}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA warehouse GRANT EXECUTE ON FUNCTIONS TO ${grantee}`,
  ];
}

import type pg from 'pg';
import { allRelations, asGrantor } from './granting.js';

/** Schemas for readers. Nothing in them is secret; their views show parts of schema `muster`. */
const SCHEMAS = ['mirror', 'warehouse'];

/**
 * Lets a role read schemas `mirror` and `warehouse`, both what exists and what this user makes later. Throws `invalid_configuration` if there is no such
 * role, or if the user of `url` may not grant.
 */
export function grantReading(url: string, role: string): Promise<void> {
  return asGrantor(url, role, readingGrants);
}

/** The statements that let a role, given by its quoted name, read these schemas. */
export async function readingGrants(client: pg.Client, grantee: string): Promise<readonly string[]> {
  const { tables } = await allRelations(client, SCHEMAS);
  const schemas = SCHEMAS.join(', ');
  return [
    `GRANT USAGE ON SCHEMA ${schemas} TO ${grantee}`,
    `GRANT SELECT ON TABLE ${tables.join(', ')} TO ${grantee}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA warehouse TO ${grantee}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schemas} GRANT SELECT ON TABLES TO ${grantee}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA warehouse GRANT EXECUTE ON FUNCTIONS TO ${grantee}`,
  ];
}

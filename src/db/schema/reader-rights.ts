import type pg from 'pg';
import { allRelations, asGrantor } from './granting.js';

/** What is made for readers. Nothing in it is secret; of schema `muster` they see what the views of these show. */
const SCHEMAS = ['mirror', 'warehouse'];

/**
 * Lets a role read schemas `mirror` and `warehouse`: what is there, and what this user makes later. Throws `invalid_configuration` where there is no such
 * role, or where the user of `url` may not grant.
 */
export function grantReading(url: string, role: string): Promise<void> {
  return asGrantor(url, role, readingGrants);
}

/** The statements that let a role, given by its quoted name, read what is made for readers. */
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

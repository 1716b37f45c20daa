import type { FastifyInstance } from 'fastify';
import { z } from 'zod';

/** The model of a query. A parameter without a value counts as absent: addresses are built by filling in a template. */
export function queryOf<T extends z.ZodRawShape>(shape: T) {
  return z.preprocess(withoutEmpty, z.strictObject(shape));
}

/** Routes of this scope that name no model of a query take none: `POST /api/syncs?environment=test` must not sync everything. */
export function refuseUnknownQueries(api: FastifyInstance): void {
  api.addHook('onRoute', (route) => {
    route.schema = { querystring: queryOf({}), ...route.schema };
  });
}

/** How many to give: `standard` unless said, and `most` where more is said, since the answer says where it goes on. */
export function limit(standard: number, most: number) {
  return z
    .string()
    .refine((text) => /^0*[1-9]\d*$/.test(text), 'must be a whole number above 0')
    .transform((text) => Math.min(Number(text), most))
    .default(standard)
    .meta({ type: 'integer', minimum: 1, description: `${standard} unless said; more than ${most} counts as ${most}.` });
}

function withoutEmpty(query: unknown): unknown {
  if (typeof query !== 'object' || query === null) return query;
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
}

import type { z } from 'zod';
import type { Role } from '../../db/tables/named-tokens.js';
import { type OwnProblem, problemAnswers } from './problem-model.js';

/** A response in one of several content types. */
interface Described {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly type: 'integer' | 'string' }>>;
  readonly content: Readonly<Record<string, { readonly schema: z.ZodType }>>;
}

/** The responses of a route: `right` by status, and its own problems (docs/errors.md). */
export function answers<T extends Record<number, z.ZodType | Described>>(right: T, problems: readonly OwnProblem[] = []): T {
  return { ...problemAnswers(problems), ...right };
}

/** The models of an operation, and its own problems. */
interface OperationModels {
  readonly description?: string;
  readonly params?: z.ZodType;
  readonly querystring?: z.ZodType;
  readonly body?: z.ZodType;
  /** The successes by status. */
  readonly response: Record<number, z.ZodType | Described>;
  readonly problems?: readonly OwnProblem[];
}

/**
 * The options of the routes that the OpenAPI document lists under one tag. There is a function for each role, the least that may call the route; it
 * takes the id of the operation, its summary, and its models.
 */
export function operationsOf(tag: string) {
  const operationFor =
    (role: Role) =>
    <const T extends OperationModels>(operationId: string, summary: string, { response, problems, ...schema }: T) => ({
      config: { role },
      schema: { tags: [tag], operationId, summary, ...schema, response: answers<T['response']>(response, problems) },
    });
  return { viewer: operationFor('viewer'), operator: operationFor('operator'), admin: operationFor('admin') };
}

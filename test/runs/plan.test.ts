import { describe, expect, test } from 'vitest';
import { type PlanInput, planWalks } from '../../src/runs/plan.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

type LastWalk = PlanInput['lastWalks'][number];

const { employees, departments, absences } = ENTRIES;
const endpoints = endpointsOf({ employees, departments, absences });
const catalogue = { endpoints, get: () => undefined };
const walk = (resource: string, succeeded: boolean): LastWalk => ({ id: `${resource}-walk`, resource, succeeded });
const everything = [{ resource: 'employees' }, { resource: 'departments' }, { resource: 'absences' }];

describe('resume', () => {
  test.each<[string, LastWalk[], string[] | undefined, object[]]>([
    ['no run before', [], undefined, everything],
    ['everything succeeded', [walk('employees', true), walk('departments', true)], undefined, everything],
    [
      'one did not',
      [walk('employees', true), walk('departments', false), walk('absences', true)],
      undefined,
      [{ resource: 'departments', continues: 'departments-walk' }],
    ],
    [
      'in the order of the catalogue',
      [walk('absences', false), walk('employees', false)],
      undefined,
      [
        { resource: 'employees', continues: 'employees-walk' },
        { resource: 'departments' },
        { resource: 'absences', continues: 'absences-walk' },
      ],
    ],
    [
      'it had not every list',
      [walk('departments', false), walk('absences', true)],
      undefined,
      [{ resource: 'employees' }, { resource: 'departments', continues: 'departments-walk' }],
    ],
    ['another list is asked for', [walk('departments', false)], ['absences'], [{ resource: 'absences' }]],
    ['a list that the catalogue no longer has', [walk('gone', false)], undefined, everything],
  ])('%s', (_, lastWalks, resources, planned) => {
    expect(planWalks({ catalogue, mode: 'resume', lastWalks, ...(resources && { resources }) })).toEqual(planned);
  });
});

test('full walks everything from the start, or what is asked for', () => {
  const lastWalks = [walk('departments', false)];
  expect(planWalks({ catalogue, mode: 'full', lastWalks })).toEqual(everything);
  expect(planWalks({ catalogue, mode: 'full', lastWalks, resources: ['departments'] })).toEqual([{ resource: 'departments' }]);
});

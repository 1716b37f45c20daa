import type { PlannedCompany, Resource } from './company-spec.js';
import { Random } from './random.js';

const FIRST_NAMES = 'Åse Jörg Zoë Łucja Nguyễn Siân Þóra Miloš 李娜 Anna Per Ingrid Amélie Søren'.split(' ');
const LAST_NAMES = "Ødegård Müller O'Brien Żółkowski Trần Jónsdóttir 王 Hansen García-Peña Novák Lie Bakke".split(' ');
const TITLES = ['Account Manager', 'Nurse', 'Fisherman', 'Controller', 'Sjåfør', 'Welder', 'HR Advisor', 'Développeuse'];
const STREETS = ['Storgata', 'Åsveien', 'Rue de l’Église', 'Kirkeveien', 'Bahnhofstraße', 'Ulica Długa'];
const CITIES = ['Bodø', 'Ålesund', 'Tromsø', 'Kraków', 'Köln', 'Reykjavík'];
const UNITS = ['Finance', 'Drift', 'Salg & service', 'Kjøkken', 'Lager', 'Forschung', 'IT', 'Vedlikehold'];
const ABSENCES = ['vacation', 'sick leave', 'parental leave', 'time off in lieu'];

/**
 * Notes as JSON texts. They would break a careless reader: brackets and quotes inside strings, escaped letters, a surrogate pair in both
 * spellings, a line separator.
 */
const NOTES = [
  'null',
  '""',
  '"Works from home on Fridays"',
  '"Prefers \\"dagvakt\\" ]}, {\\"data\\":[ as written"',
  '"Path C:\\\\l\\u00f8nn\\\\2024\\\\"',
  '"Champion 2023 🏆 / \\ud83c\\udfc6"',
  '"First line\\nsecond line\\u2028third"',
  '"Vacances à l’été – approuvées"',
];

/** The name of a list's random numbers, which no other list shares. */
function stream(seed: number, companyId: string, resource: Resource): string {
  return `${seed} ${companyId} ${resource}`;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}

function date(random: Random, firstYear: number, years: number): string {
  return `${firstYear + random.below(years)}-${two(1 + random.below(12))}-${two(1 + random.below(28))}`;
}

/** A number with more digits than a double can hold. */
function longDecimal(random: Random): string {
  const head = String(1 + random.below(9));
  return random.below(2) === 0
    ? `${head}${random.digits(16)}.${random.digits(2)}0`
    : `${head}${random.digits(4)}.${random.digits(18)}`;
}

function longInteger(random: Random): string {
  return `9${random.digits(18)}`;
}

function address(random: Random): string {
  return `{"street":"${random.pick(STREETS)} ${1 + random.below(180)}","postalCode":"${random.digits(4)}","city":"${random.pick(CITIES)}"}`;
}

/**
 * The JSON text of a record. This is a pure function: `serial` identifies the record in the list and fixes its identity; `edition` grows when
 * the record changes, and decides everything else.
 */
export function recordText(company: PlannedCompany, seed: number, resource: Resource, serial: number, edition: number): string {
  const name = stream(seed, company.companyId, resource);
  const identity = new Random(name, serial);
  const id = identity.guid();
  const now = new Random(name, serial, edition + 1);
  const other = (of: Resource) => new Random(stream(seed, company.companyId, of), now.below(Math.max(1, company[of]))).guid();
  const modified = `"modifiedAt":"${new Date(Date.UTC(2024, 0, 1) + serial * 61_000 + edition * 3_600_000).toISOString()}"`;

  switch (resource) {
    case 'employees': {
      const number = 100_001 + serial;
      const hired = date(identity, 1990, 34);
      return (
        `{"uid":"${id}","employeeNumber":"${number}","firstName":"${identity.pick(FIRST_NAMES)}","lastName":"${identity.pick(LAST_NAMES)}",` +
        `"email":"employee.${number}@example.com","hireDate":"${hired}","departmentId":"${other('departments')}","jobTitle":"${now.pick(TITLES)}",` +
        `"salary":${longDecimal(now)},"hourlyRate":${180 + now.below(400)}.50,"accruedUnits":${longInteger(now)},"address":${address(now)},` +
        `"active":${now.below(20) > 0},"note":${now.pick(NOTES)},${modified}}`
      );
    }
    case 'departments':
      return (
        `{"id":"${id}","code":"D${String(serial + 1).padStart(4, '0')}","name":"${identity.pick(UNITS)} ${serial + 1}",` +
        `"managerId":${company.employees === 0 ? 'null' : `"${other('employees')}"`},"budget":${longDecimal(now)},${modified}}`
      );
    case 'absences':
      return (
        `{"id":${400_000 + serial},"employeeId":"${other('employees')}","type":"${identity.pick(ABSENCES)}","from":"${date(identity, 2022, 4)}",` +
        `"days":${1 + now.below(20)}.${now.pick(['0', '25', '50'])},"note":${now.pick(NOTES)},${modified}}`
      );
    case 'documents':
      return (
        `{"id":"${id}","employeeId":"${other('employees')}","fileName":"contract-${serial + 1}-v${edition + 1}.pdf","bytes":${now.below(9_000_000)},` +
        `"checksum":${longInteger(now)},${modified}}`
      );
    case 'positions':
      return `{"id":"P-${String(serial + 1).padStart(4, '0')}","title":"${identity.pick(TITLES)}","grade":${1 + now.below(14)},${modified}}`;
    case 'contracts':
      return (
        `{"id":"${id}","employeeId":"${other('employees')}","department":{"id":"${other('departments')}"},"from":"${date(identity, 2010, 15)}",` +
        `"percentage":${1 + now.below(100)}.0,"yearly":${longDecimal(now)},${modified}}`
      );
    case 'shifts':
      return (
        `{"id":${700_000 + serial},"employeeId":"${other('employees')}","from":"${date(identity, 2024, 2)}T${two(now.below(24))}:00:00Z",` +
        `"hours":${1 + now.below(11)}.50,"note":${now.pick(NOTES)},${modified}}`
      );
    case 'notes':
      return `{"id":"${id}","employeeId":"${other('employees')}","text":${now.pick(NOTES)},${modified}}`;
    case 'payslips':
      return (
        `{"id":"${id}","employeeId":"${other('employees')}","month":"${date(identity, 2023, 3).slice(0, 7)}",` +
        `"gross":${longDecimal(now)},"net":${longDecimal(now)},"reference":${longInteger(now)},${modified}}`
      );
    case 'timesheets':
      return (
        `{"id":"${id}","employeeId":"${other('employees')}","week":"${2023 + identity.below(3)}-W${two(1 + identity.below(52))}",` +
        `"hours":${now.below(50)}.${now.pick(['0', '25', '50'])},"approved":${now.below(2) === 0},${modified}}`
      );
  }
}

/** The JSON text of a company's own record. */
export function companyText(company: PlannedCompany, seed: number): string {
  const random = new Random(`${seed} ${company.companyId}`);
  return (
    `{"id":"${company.companyId}","name":${JSON.stringify(company.name)},"registrationNumber":"9${random.digits(8)}",` +
    `"address":${address(random)},"currency":"NOK","shareCapital":${longDecimal(random)}}`
  );
}

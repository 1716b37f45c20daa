import type { Json } from '../warehouse/warehouse-fixture.js';
import { dayOf, type Members, type Person } from './people.js';

// Lists of people as eleven HR systems publish them in their public documentation, with invented values. Where a system has pay, bank accounts or
// absences at another address, they are put into the record as that address gives them: an array of objects of the same form.

/** Subqueries over the views of the list; `$` is the name of the list. Each gives `company_id` and `id` first. */
interface Fragments {
  /** `department`, `hired` and `left_on`, both dates. */
  readonly people: string;
  /** `valid_from` and `amount` of each pay. */
  readonly pay: string;
  /** `iban`. */
  readonly accounts: string;
  /** `kind` and `days`. */
  readonly absences: string;
  /** The column of the list's view that holds the family name. */
  readonly family: string;
}

export interface HrShape {
  /** The name of the list, too. */
  readonly name: string;
  /** Whose public documentation describes it. */
  readonly source: string;
  /** What the catalogue says besides method, path and pager. */
  readonly entry: { readonly id: string; readonly flatten?: number; readonly columns?: Readonly<Record<string, string>> };
  id(n: number): string;
  record(person: Person, drift: Members): Members;
  readonly sql: Fragments;
}

const guid = (kind: number, n: number) => `${String(kind).repeat(8)}-0000-4000-8000-${String(n).padStart(12, '0')}`;
const isoZ = (day: string) => `${day}T00:00:00.000Z`;
const departmentId = (name: string) => 900 + name.length;
/** The moment as OData 2 writes it. */
const odataDate = (day: string) => `/Date(${Date.parse(day)})/`;
const FROM_ODATA = (column: string) => `to_timestamp(substring(${column} FROM '-?[0-9]+')::bigint / 1000) AT TIME ZONE 'UTC'`;

/** BambooHR: flat members, custom fields, tables as arrays, numbers and amounts as texts, `0000-00-00` for no day, days of an absence as a map. */
const bamboo: HrShape = {
  name: 'bamboo_people',
  source: 'BambooHR API, employees, tables and time off requests',
  entry: { id: 'id', columns: { terminationDate: 'date' } },
  id: (n) => String(n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    id: String(n),
    firstName: given,
    lastName: family,
    department,
    hireDate: hired,
    terminationDate: left ?? '0000-00-00',
    status: left ? 'Inactive' : 'Active',
    lastChanged: `${hired}T09:${String(n % 60).padStart(2, '0')}:00+00:00`,
    supervisorEId: n > 9 ? String(n % 10) : null,
    ...drift,
    compensation: pay.map(({ from, amount }, i) => ({
      id: String(n * 10 + i),
      startDate: from,
      rate: { currency: 'NOK', value: amount.toFixed(2) },
      type: 'Salary',
      paidPer: 'Month',
    })),
    bankAccounts: iban === null ? [] : [{ iban, primary: true, bank: { name: `Bank ${n % 4}`, bic: null } }],
    timeOff: absences.map(({ from, to, kind, days }, i) => ({
      id: n * 10 + i,
      type: { id: kind.length, name: kind },
      amount: { unit: 'days', amount: String(days) },
      start: from,
      end: to,
      dates: { [from]: '1', [to]: String(days - 1) },
    })),
  }),
  sql: {
    people: 'SELECT company_id, id, department, hire_date__date AS hired, termination_date AS left_on FROM warehouse.$',
    pay: 'SELECT company_id, id, start_date AS valid_from, rate__value::numeric AS amount FROM warehouse.$__compensation',
    accounts: 'SELECT company_id, id, iban FROM warehouse.$__bank_accounts WHERE "primary"',
    absences: 'SELECT company_id, id, type__name AS kind, amount__amount::numeric AS days FROM warehouse.$__time_off',
    family: 'last_name',
  },
};

/** Personio v1: each attribute is an object with label and value, values are objects of their own kind, custom attributes have numbers. */
const personio: HrShape = {
  name: 'personio_people',
  source: 'Personio API v1, company/employees',
  entry: { id: 'attributes.id.value', flatten: 4 },
  id: (n) => String(100_000 + n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => {
    const attribute = (label: string, value: Json, type = 'standard') => ({
      label,
      value,
      type,
      universal_id: label.toLowerCase().replaceAll(' ', '_'),
    });
    const at = (day: string | null) => day && `${day}T00:00:00+01:00`;
    return {
      type: 'Employee',
      attributes: {
        id: attribute('ID', 100_000 + n, 'integer'),
        first_name: attribute('First name', given),
        last_name: attribute('Last name', family),
        hire_date: attribute('Hire date', at(hired), 'date'),
        termination_date: attribute('Termination date', at(left), 'date'),
        department: attribute('Department', {
          type: 'Department',
          attributes: { id: departmentId(department), name: department },
        }),
        iban: attribute('IBAN', iban),
        fix_salary: attribute('Fix salary', pay.at(-1)!.amount, 'decimal'),
        salaries: attribute(
          'Salaries',
          pay.map(({ from, amount }) => ({
            type: 'Salary',
            attributes: { start_date: at(from), value: amount, currency: 'NOK' },
          })),
        ),
        absences: attribute(
          'Absences',
          absences.map(({ from, to, kind, days }) => ({
            type: 'TimeOffPeriod',
            attributes: {
              start_date: at(from),
              end_date: at(to),
              days_count: days,
              time_off_type: { type: 'TimeOffType', attributes: { name: kind } },
            },
          })),
        ),
        ...Object.fromEntries(
          Object.entries(drift).map(([key, value], i) => [`dynamic_${52_000 + i}`, attribute(key, value, 'custom')]),
        ),
      },
    };
  }, // prettier-ignore
  sql: {
    people: `SELECT company_id, id, attributes__department__value__attributes__name AS department, attributes__hire_date__value::date AS hired,
      attributes__termination_date__value::date AS left_on FROM warehouse.$`,
    pay: 'SELECT company_id, id, attributes__start_date::date AS valid_from, attributes__value AS amount FROM warehouse.$__attributes__salaries__value',
    accounts: 'SELECT company_id, id, attributes__iban__value AS iban FROM warehouse.$ WHERE attributes__iban__value IS NOT NULL',
    absences: `SELECT company_id, id, attributes__time_off_type__attributes__name AS kind, attributes__days_count AS days
      FROM warehouse.$__attributes__absences__value`,
    family: 'attributes__last_name__value',
  },
};

/** HiBob: sections, custom columns by id, human-readable copies, days without time. */
const hibob: HrShape = {
  name: 'hibob_people',
  source: 'HiBob API, people/search',
  entry: { id: 'id', flatten: 3, columns: { 'internal.terminationDate': 'date' } },
  id: (n) => String(3_300_000_000_000_000_000n + BigInt(n)),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    id: String(3_300_000_000_000_000_000n + BigInt(n)),
    displayName: `${given} ${family}`,
    firstName: given,
    surname: family,
    avatarUrl: null,
    work: {
      startDate: hired,
      department,
      site: 'Oslo',
      reportsTo: n > 9 ? { id: String(n % 10), displayName: `Given ${n % 10}`, email: null } : null,
      custom: drift,
      customColumns: { [`column_${1_654_000_000_000 + (n % 3)}`]: `C${n}` },
    },
    internal: { status: left ? 'Inactive' : 'Active', terminationDate: left, lifecycleStatus: left ? 'Terminated' : 'Employed' },
    payroll: {
      salary: { payment: `NOK${pay.at(-1)!.amount}`, isCurrent: true },
      history: pay.map(({ from, amount }, i) => ({
        id: n * 10 + i,
        effectiveDate: from,
        base: { value: amount, currency: 'NOK' },
        payPeriod: 'Monthly',
      })),
    },
    financial: { bankAccounts: iban === null ? [] : [{ id: n, iban, bankAccountType: 'checking', useForBonus: n % 2 === 0 }] },
    timeoff: {
      requests: absences.map(({ from, to, kind, days }, i) => ({
        requestId: n * 10 + i,
        policyTypeDisplayName: kind,
        startDate: from,
        endDate: to,
        totalDuration: days,
      })),
    },
    humanReadable: { work: { department: `Department ${department}` } },
  }), // prettier-ignore
  sql: {
    people:
      'SELECT company_id, id, work__department AS department, work__start_date__date AS hired, internal__termination_date AS left_on FROM warehouse.$',
    pay: 'SELECT company_id, id, effective_date__date AS valid_from, base__value AS amount FROM warehouse.$__payroll__history',
    accounts: 'SELECT company_id, id, iban FROM warehouse.$__financial__bank_accounts',
    absences:
      'SELECT company_id, id, policy_type_display_name AS kind, total_duration AS days FROM warehouse.$__timeoff__requests',
    family: 'surname',
  },
};

/** Workday: references as descriptor and id with a link, days with an offset, names with underscores and capitals, groups of a report as arrays. */
const workday: HrShape = {
  name: 'workday_workers',
  source: 'Workday REST staffing/workers and reports as a service',
  entry: { id: 'id', flatten: 2, columns: { Hire_Date: 'text' } },
  id: (n) => `3aa5550b7fe348b98d7b5741afc${String(n).padStart(5, '0')}`,
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => {
    const reference = (id: string, descriptor: string) => ({ id, descriptor, href: `https://api.example.com/ccx/${id}` });
    return {
      id: `3aa5550b7fe348b98d7b5741afc${String(n).padStart(5, '0')}`,
      descriptor: `${given} ${family}`,
      person: { legalName: { firstName: given, lastName: family } },
      primaryJob: {
        ...reference(`job${n}`, `P-${n} Worker`),
        supervisoryOrganization: reference(`org${departmentId(department)}`, department),
        businessTitle: 'Worker',
      },
      Hire_Date: `${hired}-08:00`,
      Termination_Date: left && `${left}-08:00`,
      Compensation_group: pay.map(({ from, amount }) => ({
        Effective_Date: `${from}-08:00`,
        Base_Pay: String(amount),
        Currency: reference('nok', 'NOK'),
      })),
      Payment_Elections_group:
        iban === null ? [] : [{ IBAN: iban, Payment_Type: reference('dd', 'Direct Deposit'), Order: '01' }],
      Time_Off_group: absences.map(({ from, kind, days }) => ({
        Time_Off_Date: `${from}-08:00`,
        Type: reference(kind, kind),
        Units: String(days),
      })),
      additionalData: drift,
    };
  }, // prettier-ignore
  sql: {
    people: `SELECT company_id, id, primary_job__supervisory_organization__descriptor AS department, left(hire_date, 10)::date AS hired,
      left(termination_date, 10)::date AS left_on FROM warehouse.$`,
    pay: 'SELECT company_id, id, left(effective_date, 10)::date AS valid_from, base_pay::numeric AS amount FROM warehouse.$__compensation_group',
    accounts: 'SELECT company_id, id, iban FROM warehouse.$__payment_elections_group',
    absences: 'SELECT company_id, id, type__descriptor AS kind, units::numeric AS days FROM warehouse.$__time_off_group',
    family: 'person__legal_name__last_name',
  },
};

/** SAP SuccessFactors: OData 2 with `__metadata`, `__deferred`, `results`, moments as `/Date(…)/` and amounts as texts. */
const successfactors: HrShape = {
  name: 'sf_people',
  source: 'SAP SuccessFactors OData v2, PerPerson and EmpEmployment',
  entry: { id: 'personIdExternal', flatten: 2 },
  id: (n) => String(n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => {
    const of = (entity: string, key: string | number) => ({
      uri: `https://sf.example.com/odata/v2/${entity}('${key}')`,
      type: `SFOData.${entity}`,
    });
    const results = (entity: string, all: readonly Members[]) => ({
      results: all.map((each, i) => ({ __metadata: of(entity, `${n}-${i}`), ...each })),
    });
    return {
      __metadata: of('PerPerson', n),
      personIdExternal: String(n),
      startDate: odataDate(hired),
      endDate: left && odataDate(left),
      departmentNav: {
        __metadata: of('FODepartment', departmentId(department)),
        externalCode: String(departmentId(department)),
        name: department,
      },
      personalInfo: { firstName: given, lastName: family, nationality: null },
      photoNav: { __deferred: { uri: `https://sf.example.com/odata/v2/PerPerson('${n}')/photoNav` } },
      empCompensationNav: results(
        'EmpPayCompRecurring',
        pay.map(({ from, amount }) => ({ startDate: odataDate(from), paycompvalue: String(amount), currencyCode: 'NOK' })),
      ),
      paymentInformationNav: results('PaymentInformationDetailV3', iban === null ? [] : [{ iban, bankCountry: 'NOR' }]),
      timeNav: results(
        'EmployeeTime',
        absences.map(({ from, kind, days }) => ({ startDate: odataDate(from), timeType: kind, quantityInDays: String(days) })),
      ),
      custom: drift,
    };
  }, // prettier-ignore
  sql: {
    people: `SELECT company_id, id, department_nav__name AS department, (${FROM_ODATA('start_date')})::date AS hired,
      (${FROM_ODATA('end_date')})::date AS left_on FROM warehouse.$`,
    pay: `SELECT company_id, id, (${FROM_ODATA('start_date')})::date AS valid_from, paycompvalue::numeric AS amount
      FROM warehouse.$__emp_compensation_nav__results`,
    accounts: 'SELECT company_id, id, iban FROM warehouse.$__payment_information_nav__results',
    absences: 'SELECT company_id, id, time_type AS kind, quantity_in_days::numeric AS days FROM warehouse.$__time_nav__results',
    family: 'personal_info__last_name',
  },
};

/** ADP Workers v2: codes as objects, work assignments with arrays of organizations and of pay, custom fields as arrays by kind. */
const adp: HrShape = {
  name: 'adp_workers',
  source: 'ADP Workforce Now, hr/v2/workers',
  entry: {
    id: 'associateOID',
    flatten: 3,
    columns: { 'workerDates.terminationDate': 'date', 'workAssignments.payHistory.effectiveDate': 'date' },
  },
  id: (n) => `G3${String(n).padStart(14, '0')}`,
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => {
    const code = (codeValue: string, shortName: string) => ({ codeValue, shortName });
    return {
      associateOID: `G3${String(n).padStart(14, '0')}`,
      workerID: { idValue: `W${n}`, schemeCode: code('PFID', 'Position') },
      person: { legalName: { givenName: given, familyName1: family, formattedName: `${family}, ${given}` }, governmentIDs: [] },
      workerDates: { originalHireDate: hired, terminationDate: left },
      workerStatus: { statusCode: code(left ? 'T' : 'A', left ? 'Terminated' : 'Active') },
      workAssignments: [
        {
          itemID: `A${n}`,
          primaryIndicator: true,
          hireDate: hired,
          homeOrganizationalUnits: [
            { typeCode: code('D', 'Department'), nameCode: code(String(departmentId(department)), department) },
          ],
          payHistory: pay.map(({ from, amount }) => ({
            effectiveDate: from,
            periodRateAmount: { amountValue: amount, currencyCode: 'NOK' },
          })),
        },
      ],
      payDistributions:
        iban === null
          ? []
          : [{ itemID: `P${n}`, depositAccount: { financialAccount: { iban, typeCode: code('C', 'Checking') } } }],
      timeOffRequests: absences.map(({ from, kind, days }, i) => ({
        requestID: `${n}-${i}`,
        paidTimeOffEntries: [{ date: from, policyCode: code(kind, kind), quantity: { valueNumber: days, unitTimeCode: 'day' } }],
      })),
      customFieldGroup: { stringFields: Object.entries(drift).map(([key, value]) => ({ nameCode: code(key, key), value })) },
    };
  }, // prettier-ignore
  sql: {
    people: `SELECT w.company_id, w.id, o.name_code__short_name AS department, w.worker_dates__original_hire_date__date AS hired,
        w.worker_dates__termination_date AS left_on
      FROM warehouse.$ w JOIN warehouse.$__work_assignments__home_organizational_units o USING (company_id, id)`,
    pay: 'SELECT company_id, id, effective_date AS valid_from, period_rate_amount__amount_value AS amount FROM warehouse.$__work_assignments__pay_history',
    accounts: 'SELECT company_id, id, deposit_account__financial_account__iban AS iban FROM warehouse.$__pay_distributions',
    absences: `SELECT company_id, id, policy_code__short_name AS kind, quantity__value_number AS days
      FROM warehouse.$__time_off_requests__paid_time_off_entries`,
    family: 'person__legal_name__family_name1',
  },
};

/** Gusto: jobs with compensations, terminations as an array, rates as texts, versions that change with each write. */
const gusto: HrShape = {
  name: 'gusto_employees',
  source: 'Gusto API, companies/employees with jobs and compensations',
  entry: { id: 'uuid' },
  id: (n) => guid(6, n),
  record: ({ n, night, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    uuid: guid(6, n),
    first_name: given,
    last_name: family,
    department,
    terminated: left !== null,
    onboarded: true,
    version: `v${n}-${night < 14 ? 1 : 2}`,
    jobs: [
      {
        uuid: guid(7, n),
        title: 'Worker',
        hire_date: hired,
        rate: String(pay.at(-1)!.amount),
        compensations: pay.map(({ from, amount }, i) => ({
          uuid: guid(8, n * 10 + i),
          rate: amount.toFixed(2),
          payment_unit: 'Month',
          effective_date: from,
        })),
      },
    ],
    terminations: left === null ? [] : [{ uuid: guid(9, n), effective_date: left, active: true, run_termination_payroll: false }],
    bank_accounts: iban === null ? [] : [{ uuid: guid(5, n), name: 'Checking', account_number: iban }],
    eligible_paid_time_off: absences.map(({ kind, days }) => ({ name: kind, accrual_unit: 'Day', used: String(days) })),
    custom_fields: Object.entries(drift).map(([name, value], i) => ({ id: guid(4, i), name, type: 'text', value })),
  }), // prettier-ignore
  sql: {
    people: `SELECT e.company_id, e.id, e.department, j.hire_date__date AS hired, t.effective_date__date AS left_on FROM warehouse.$ e
      JOIN warehouse.$__jobs j USING (company_id, id) LEFT JOIN warehouse.$__terminations t USING (company_id, id)`,
    pay: 'SELECT company_id, id, effective_date__date AS valid_from, rate::numeric AS amount FROM warehouse.$__jobs__compensations',
    accounts: 'SELECT company_id, id, account_number AS iban FROM warehouse.$__bank_accounts',
    absences: 'SELECT company_id, id, name AS kind, used::numeric AS days FROM warehouse.$__eligible_paid_time_off',
    family: 'last_name',
  },
};

/** Deel: people with employments, moments at midnight UTC, e-mail addresses as an array, custom fields as an array. */
const deel: HrShape = {
  name: 'deel_people',
  source: 'Deel API, people',
  entry: { id: 'id' },
  id: (n) => guid(3, n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    id: guid(3, n),
    created_at: isoZ(hired),
    first_name: given,
    last_name: family,
    full_name: `${given} ${family}`,
    emails: [
      { type: 'work', value: `p${n}@example.com` },
      { type: 'personal', value: null },
    ],
    start_date: isoZ(hired),
    termination_last_day: left && isoZ(left),
    department: { id: departmentId(department), name: department, parent: null },
    employments: pay.map(({ from, amount }, i) => ({
      id: `${n}-${i}`,
      name: 'Worker',
      start_date: isoZ(from),
      payment: { rate: amount, scale: 'monthly', currency: 'NOK', contract_name: null },
      is_ended: i < pay.length - 1,
    })),
    bank_accounts: iban === null ? null : [{ iban, is_preferred: true }],
    time_offs: absences.map(({ from, to, kind, days }) => ({
      type: kind,
      amount: days,
      start_date: isoZ(from),
      end_date: isoZ(to),
    })),
    custom_fields: drift,
  }), // prettier-ignore
  sql: {
    people: `SELECT company_id, id, department__name AS department, (start_date__timestamptz AT TIME ZONE 'UTC')::date AS hired,
      (termination_last_day__timestamptz AT TIME ZONE 'UTC')::date AS left_on FROM warehouse.$`,
    pay: `SELECT company_id, id, (start_date__timestamptz AT TIME ZONE 'UTC')::date AS valid_from, payment__rate AS amount FROM warehouse.$__employments`,
    accounts: 'SELECT company_id, id, iban FROM warehouse.$__bank_accounts WHERE is_preferred',
    absences: 'SELECT company_id, id, type AS kind, amount AS days FROM warehouse.$__time_offs',
    family: 'last_name',
  },
};

/** Factorial: flat members with numeric ids, amounts in hundredths, custom fields as a map by id. */
const factorial: HrShape = {
  name: 'factorial_employees',
  source: 'Factorial API, employees, contract versions and leaves',
  entry: { id: 'id', columns: { terminated_on: 'date', 'contract_versions.starts_on': 'date' } },
  id: (n) => String(500 + n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    id: 500 + n,
    access_id: 9_000 + n,
    first_name: given,
    last_name: family,
    team_name: department,
    hired_on: hired,
    terminated_on: left,
    bank_number: iban,
    manager_id: n > 9 ? 500 + (n % 10) : null,
    contract_versions: pay.map(({ from, amount }, i) => ({
      id: n * 10 + i,
      starts_on: from,
      salary_amount: Math.round(amount * 100),
      salary_frequency: 'monthly',
    })),
    leaves: absences.map(({ from, to, kind, days }, i) => ({
      id: n * 10 + i,
      start_on: from,
      finish_on: to,
      leave_type_name: kind,
      duration: { days, half_day: null },
    })),
    // A map by the id of the field, and one by the id of the person who approved.
    custom_fields: Object.fromEntries(Object.values(drift).map((value, i) => [String(81_500 + i), value])),
    approvals: { [String(500 + n * 7)]: { approved: n % 2 === 0, at: `${hired}T08:00:00Z` } },
  }), // prettier-ignore
  sql: {
    people: 'SELECT company_id, id, team_name AS department, hired_on__date AS hired, terminated_on AS left_on FROM warehouse.$',
    pay: 'SELECT company_id, id, starts_on AS valid_from, salary_amount / 100 AS amount FROM warehouse.$__contract_versions',
    accounts: 'SELECT company_id, id, bank_number AS iban FROM warehouse.$ WHERE bank_number IS NOT NULL',
    absences: 'SELECT company_id, id, leave_type_name AS kind, duration__days AS days FROM warehouse.$__leaves',
    family: 'last_name',
  },
};

/** Visma.net Payroll and its kin on .NET: members in capitals, date-times without a zone, `0001-01-01T00:00:00` for none, values in wrappers. */
const visma: HrShape = {
  name: 'visma_employees',
  source: 'Visma.net ERP API, employee',
  entry: { id: 'EmployeeNumber', flatten: 2 },
  id: (n) => String(n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => {
    const at = (day: string) => `${day}T00:00:00`;
    return {
      EmployeeNumber: String(n),
      Contact: { FirstName: given, LastName: family, Phone1: null },
      Department: { Id: String(departmentId(department)), Description: department },
      EmploymentDate: at(hired),
      TerminationDate: left ? at(left) : '0001-01-01T00:00:00',
      LastModifiedDateTime: `${hired}T08:12:13.${String(100 + (n % 900))}`,
      IsActive: { value: left === null },
      BankAccount: { Iban: { value: iban } },
      Salaries: pay.map(({ from, amount }) => ({
        ValidFrom: at(from),
        Amount: { value: amount },
        WageCode: { Id: '100', Description: 'Fastlønn' },
      })),
      Absences: absences.map(({ from, to, kind, days }) => ({
        From: at(from),
        To: at(to),
        Code: { Id: kind[0]!, Description: kind },
        Days: days,
      })),
      Attributes: drift,
    };
  }, // prettier-ignore
  sql: {
    people: `SELECT company_id, id, department__description AS department, employment_date__timestamp::date AS hired,
      nullif(termination_date::date, '0001-01-01') AS left_on FROM warehouse.$`,
    pay: 'SELECT company_id, id, valid_from::date AS valid_from, amount__value AS amount FROM warehouse.$__salaries',
    accounts:
      'SELECT company_id, id, bank_account__iban__value AS iban FROM warehouse.$ WHERE bank_account__iban__value IS NOT NULL',
    absences: 'SELECT company_id, id, code__description AS kind, days FROM warehouse.$__absences',
    family: 'contact__last_name',
  },
};

/** SCIM 2.0 (RFC 7643): extensions under URNs, multi-valued attributes, meta. */
const scim: HrShape = {
  name: 'scim_users',
  source: 'RFC 7643 and 7644, Users with the enterprise extension and one of a vendor',
  entry: { id: 'id', flatten: 2, columns: { 'urn:example:hr:User.terminationDate': 'date' } },
  id: (n) => guid(2, n),
  record: ({ n, given, family, department, hired, left, pay, iban, absences }, drift) => ({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User', 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
    id: guid(2, n),
    userName: `p${n}@example.com`,
    name: { givenName: given, familyName: family, formatted: `${given} ${family}` },
    active: left === null,
    emails: [{ value: `p${n}@example.com`, type: 'work', primary: true }],
    groups: [{ value: guid(1, departmentId(department)), display: department, $ref: `../Groups/${departmentId(department)}` }],
    'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User': {
      department,
      manager: { value: guid(2, n % 10), displayName: null },
    },
    'urn:example:hr:User': {
      hireDate: hired,
      terminationDate: left,
      pay: pay.map(({ from, amount }) => ({ validFrom: from, value: amount, primary: true })),
      bankAccounts: iban === null ? [] : [{ value: iban, type: 'salary', primary: true }],
      absences: absences.map(({ from, kind, days }) => ({ start: from, type: kind, value: days })),
      ...drift,
    },
    meta: { resourceType: 'User', created: isoZ(hired), lastModified: isoZ(dayOf(3_400 + n)), version: `W/"${n}"` },
  }), // prettier-ignore
  sql: {
    people: `SELECT u.company_id, u.id, g.display AS department, urn_example_hr_user__hire_date__date AS hired,
      urn_example_hr_user__termination_date AS left_on FROM warehouse.$ u JOIN warehouse.$__groups g USING (company_id, id)`,
    pay: 'SELECT company_id, id, valid_from__date AS valid_from, value AS amount FROM warehouse.$__urn_example_hr_user__pay',
    accounts: 'SELECT company_id, id, value AS iban FROM warehouse.$__urn_example_hr_user__bank_accounts WHERE "primary"',
    absences: 'SELECT company_id, id, type AS kind, value AS days FROM warehouse.$__urn_example_hr_user__absences',
    family: 'name__family_name',
  },
};

export const HR_SHAPES: readonly HrShape[] = [
  bamboo,
  personio,
  hibob,
  workday,
  successfactors,
  adp,
  gusto,
  deel,
  factorial,
  visma,
  scim,
];

BEGIN TRANSACTION;
CREATE TABLE afterword_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT afterword_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "afterword_version" VALUES('0003');
CREATE TABLE assertions (
	id VARCHAR NOT NULL, 
	scope_id INTEGER NOT NULL, 
	session_id VARCHAR, 
	act VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	attribute VARCHAR NOT NULL, 
	subject_key VARCHAR NOT NULL, 
	attribute_key VARCHAR NOT NULL, 
	value VARCHAR NOT NULL, 
	statement VARCHAR NOT NULL, 
	speaker VARCHAR, 
	authority INTEGER NOT NULL, 
	said_at DATETIME NOT NULL, 
	time_is_guess BOOLEAN NOT NULL, 
	valid_from DATETIME, 
	valid_to DATETIME, 
	cue VARCHAR, 
	limited_to VARCHAR, 
	outcome VARCHAR, 
	recorded_at DATETIME NOT NULL, 
	CONSTRAINT pk_assertions PRIMARY KEY (id), 
	CONSTRAINT fk_assertions_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id)
);
INSERT INTO "assertions" VALUES('d64bb24203a6c0aa76ed',1,'trip','state','entity','user','home','user','home','Graz','The user lives in Graz.','user',6,'2026-01-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:32.008576');
INSERT INTO "assertions" VALUES('1107c5a2e24b3ba60320',1,'trip','state','preference','user','diet','user','diet','vegetarian','The user is vegetarian.','user',6,'2026-01-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:32.008576');
INSERT INTO "assertions" VALUES('d741b8c8eafddf3439f8',1,'trip','state','preference','user','seat','user','seat','the window seat','The user prefers the window seat.','user',6,'2026-01-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:32.008576');
INSERT INTO "assertions" VALUES('80c3db36c2ee3ab26ed1',1,'move','state','entity','user','home','user','home','Linz','The user moved to Linz.','user',6,'2026-01-02 10:00:00.000000',0,NULL,NULL,'change',NULL,NULL,'2026-11-21 20:12:32.475291');
INSERT INTO "assertions" VALUES('d493b016a3cecaa74765',1,'move','state','entity','user','allergy','user','allergy','peanuts','The user is allergic to peanuts.','user',6,'2026-01-02 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:32.475291');
INSERT INTO "assertions" VALUES('c0446aafdb0e893f6c50',1,'move','state','entity','Ana','relation','ana','relation','sister','Ana is the user''s sister.','user',6,'2026-01-02 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:32.475291');
INSERT INTO "assertions" VALUES('3f283738faa02259fa18',1,'diet','retract','preference','user','diet','user','diet','vegetarian','The user is no longer vegetarian.','user',6,'2026-01-03 10:00:00.000000',0,NULL,NULL,'change',NULL,NULL,'2026-11-21 20:12:32.854131');
INSERT INTO "assertions" VALUES('b67cf1b9cdd0ab0057a7',1,'diet','state','preference','user','seat','user','seat','the aisle seat now','The user prefers the aisle seat now.','user',6,'2026-01-03 10:00:00.000000',0,NULL,NULL,'change',NULL,NULL,'2026-11-21 20:12:32.854131');
INSERT INTO "assertions" VALUES('9fb33990fa40035e7a6a',1,'job','state','entity','user','job','user','job','nurse','The user works as a nurse.','user',6,'2026-01-04 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:33.060147');
INSERT INTO "assertions" VALUES('745f59e81fa45aed58ef',2,'app','state','entity','user','home','user','home','Wels','The user lives in Wels.','user',6,'2026-01-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:33.786210');
INSERT INTO "assertions" VALUES('d564e425437c49ca5d49',2,'app','state','decision','user','choice','user','choice','use Postgres for the app','The user decided to use Postgres for the app.','user',6,'2026-01-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:33.786210');
INSERT INTO "assertions" VALUES('a88fbf95626723d7c8a9',2,'later','state','decision','user','choice','user','choice','SQLite instead of Postgres','The user will use SQLite instead of Postgres.','user',6,'2026-01-02 10:00:00.000000',0,NULL,NULL,'correction',NULL,NULL,'2026-11-21 20:12:34.589363');
INSERT INTO "assertions" VALUES('1eb076604405d0c43bf0',1,NULL,'state','entity','user','allergy','user','allergy','peanuts','The user is allergic to peanuts.',NULL,5,'2026-11-21 20:12:36.363595',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:36.363595');
INSERT INTO "assertions" VALUES('689c8d1f7865992489ed',2,NULL,'state','entity','user','home','user','home','Wels an der Traun','The user lives in Wels an der Traun.',NULL,6,'2026-11-21 20:12:37.212722',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:37.212722');
INSERT INTO "assertions" VALUES('022eb2e1d9a8cca28fd9',1,'pet','state','preference','user','tea','user','tea','tea','The user prefers tea.','user',6,'2026-03-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:37.750332');
INSERT INTO "assertions" VALUES('93cd6ca331180c0805b9',1,'pet','state','entity','user','home','user','home','Villach','The user lives in Villach.','user',6,'2026-03-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:37.750332');
INSERT INTO "assertions" VALUES('eade674f0b027c0027f0',2,'held','state','entity','user','home','user','home','Steyr','The user moved to Steyr.','user',6,'2026-03-01 10:00:00.000000',0,NULL,NULL,'change',NULL,NULL,'2026-11-21 20:12:38.736626');
INSERT INTO "assertions" VALUES('fb646830aec731ae27f8',1,'hobby','state','entity','user','hobby','user','hobby','chess','The user''s hobby is chess.','user',6,'2026-04-01 10:00:00.000000',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:55.914642');
INSERT INTO "assertions" VALUES('1953a7470a27aa3bfdad',1,'live','state','entity','user','allergy','user','allergy','shellfish','The user is allergic to shellfish.','user',6,'2026-11-21 20:12:56.046851',0,NULL,NULL,NULL,NULL,NULL,'2026-11-21 20:12:56.361101');
CREATE TABLE evidence (
	assertion_id VARCHAR NOT NULL, 
	ordinal INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	quote VARCHAR NOT NULL, 
	session_id VARCHAR, 
	turn INTEGER, 
	speaker VARCHAR, 
	start INTEGER, 
	CONSTRAINT pk_evidence PRIMARY KEY (assertion_id, ordinal), 
	CONSTRAINT fk_evidence_assertion_id_assertions FOREIGN KEY(assertion_id) REFERENCES assertions (id)
);
INSERT INTO "evidence" VALUES('d64bb24203a6c0aa76ed',0,'turn','I live in Graz.','trip',1,'user',0);
INSERT INTO "evidence" VALUES('1107c5a2e24b3ba60320',0,'turn','I''m vegetarian.','trip',1,'user',16);
INSERT INTO "evidence" VALUES('d741b8c8eafddf3439f8',0,'turn','I prefer the window seat.','trip',1,'user',32);
INSERT INTO "evidence" VALUES('80c3db36c2ee3ab26ed1',0,'turn','I moved to Linz.','move',1,'user',0);
INSERT INTO "evidence" VALUES('d493b016a3cecaa74765',0,'turn','I am allergic to peanuts.','move',1,'user',17);
INSERT INTO "evidence" VALUES('c0446aafdb0e893f6c50',0,'turn','My sister Ana','move',1,'user',43);
INSERT INTO "evidence" VALUES('3f283738faa02259fa18',0,'turn','I''m no longer vegetarian.','diet',1,'user',0);
INSERT INTO "evidence" VALUES('b67cf1b9cdd0ab0057a7',0,'turn','I prefer the aisle seat now.','diet',1,'user',26);
INSERT INTO "evidence" VALUES('9fb33990fa40035e7a6a',0,'turn','I work as a nurse.','job',1,'user',0);
INSERT INTO "evidence" VALUES('745f59e81fa45aed58ef',0,'turn','I live in Wels.','app',1,'user',0);
INSERT INTO "evidence" VALUES('d564e425437c49ca5d49',0,'turn','We decided to use Postgres for the app.','app',1,'user',16);
INSERT INTO "evidence" VALUES('a88fbf95626723d7c8a9',0,'turn','we will use SQLite instead of Postgres.','later',1,'user',10);
INSERT INTO "evidence" VALUES('1eb076604405d0c43bf0',0,'person','The user is allergic to peanuts.',NULL,NULL,NULL,NULL);
INSERT INTO "evidence" VALUES('689c8d1f7865992489ed',0,'person','The user lives in Wels an der Traun.',NULL,NULL,NULL,NULL);
INSERT INTO "evidence" VALUES('022eb2e1d9a8cca28fd9',0,'turn','I prefer tea.','pet',1,'user',0);
INSERT INTO "evidence" VALUES('93cd6ca331180c0805b9',0,'turn','I live in Villach.','pet',1,'user',14);
INSERT INTO "evidence" VALUES('eade674f0b027c0027f0',0,'turn','I moved to Steyr.','held',1,'user',0);
INSERT INTO "evidence" VALUES('fb646830aec731ae27f8',0,'turn','My hobby is chess.','hobby',1,'user',0);
INSERT INTO "evidence" VALUES('1953a7470a27aa3bfdad',0,'turn','I am allergic to shellfish.','live',2,'user',0);
CREATE TABLE fact_assertions (
	fact_id VARCHAR NOT NULL, 
	ordinal INTEGER NOT NULL, 
	assertion_id VARCHAR NOT NULL, 
	CONSTRAINT pk_fact_assertions PRIMARY KEY (fact_id, ordinal), 
	CONSTRAINT fk_fact_assertions_assertion_id_assertions FOREIGN KEY(assertion_id) REFERENCES assertions (id), 
	CONSTRAINT fk_fact_assertions_fact_id_facts FOREIGN KEY(fact_id) REFERENCES facts (id), 
	CONSTRAINT uq_fact_assertions_assertion_id UNIQUE (assertion_id)
);
INSERT INTO "fact_assertions" VALUES('d64bb24203a6c0aa76ed',0,'d64bb24203a6c0aa76ed');
INSERT INTO "fact_assertions" VALUES('80c3db36c2ee3ab26ed1',0,'80c3db36c2ee3ab26ed1');
INSERT INTO "fact_assertions" VALUES('c0446aafdb0e893f6c50',0,'c0446aafdb0e893f6c50');
INSERT INTO "fact_assertions" VALUES('9fb33990fa40035e7a6a',0,'9fb33990fa40035e7a6a');
INSERT INTO "fact_assertions" VALUES('d564e425437c49ca5d49',0,'d564e425437c49ca5d49');
INSERT INTO "fact_assertions" VALUES('a88fbf95626723d7c8a9',0,'a88fbf95626723d7c8a9');
INSERT INTO "fact_assertions" VALUES('1107c5a2e24b3ba60320',0,'1107c5a2e24b3ba60320');
INSERT INTO "fact_assertions" VALUES('d741b8c8eafddf3439f8',0,'d741b8c8eafddf3439f8');
INSERT INTO "fact_assertions" VALUES('d493b016a3cecaa74765',0,'d493b016a3cecaa74765');
INSERT INTO "fact_assertions" VALUES('d493b016a3cecaa74765',1,'1eb076604405d0c43bf0');
INSERT INTO "fact_assertions" VALUES('745f59e81fa45aed58ef',0,'745f59e81fa45aed58ef');
INSERT INTO "fact_assertions" VALUES('689c8d1f7865992489ed',0,'689c8d1f7865992489ed');
INSERT INTO "fact_assertions" VALUES('fb646830aec731ae27f8',0,'fb646830aec731ae27f8');
INSERT INTO "fact_assertions" VALUES('1953a7470a27aa3bfdad',0,'1953a7470a27aa3bfdad');
CREATE TABLE "facts" (
	id VARCHAR NOT NULL, 
	scope_id INTEGER NOT NULL, 
	lead_id VARCHAR NOT NULL, 
	subject_key VARCHAR NOT NULL, 
	attribute_key VARCHAR NOT NULL, 
	spans JSON NOT NULL, 
	undone_as VARCHAR NOT NULL, 
	undone_by VARCHAR, 
	contested_by JSON NOT NULL, 
	CONSTRAINT pk_facts PRIMARY KEY (id), 
	CONSTRAINT fk_facts_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id), 
	CONSTRAINT fk_facts_id_assertions FOREIGN KEY(id) REFERENCES assertions (id), 
	CONSTRAINT fk_facts_lead_id_assertions FOREIGN KEY(lead_id) REFERENCES assertions (id)
);
INSERT INTO "facts" VALUES('d64bb24203a6c0aa76ed',1,'d64bb24203a6c0aa76ed','user','home','[{"start": "2026-01-01T10:00:00+00:00", "end": "2026-01-02T10:00:00+00:00", "ending": "superseded", "by": "80c3db36c2ee3ab26ed1"}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('80c3db36c2ee3ab26ed1',1,'80c3db36c2ee3ab26ed1','user','home','[{"start": "2026-01-02T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('c0446aafdb0e893f6c50',1,'c0446aafdb0e893f6c50','ana','relation','[{"start": "2026-01-02T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('9fb33990fa40035e7a6a',1,'9fb33990fa40035e7a6a','user','job','[{"start": "2026-01-04T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('d564e425437c49ca5d49',2,'d564e425437c49ca5d49','user','choice','[{"start": "2026-01-01T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('a88fbf95626723d7c8a9',2,'a88fbf95626723d7c8a9','user','choice','[{"start": "2026-01-02T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('1107c5a2e24b3ba60320',1,'1107c5a2e24b3ba60320','user','diet','[{"start": "2026-01-01T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('d741b8c8eafddf3439f8',1,'d741b8c8eafddf3439f8','user','seat','[{"start": "2026-01-01T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('d493b016a3cecaa74765',1,'d493b016a3cecaa74765','user','allergy','[{"start": "2026-01-02T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('745f59e81fa45aed58ef',2,'745f59e81fa45aed58ef','user','home','[]','superseded','689c8d1f7865992489ed','[]');
INSERT INTO "facts" VALUES('689c8d1f7865992489ed',2,'689c8d1f7865992489ed','user','home','[{"start": "2026-01-01T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('fb646830aec731ae27f8',1,'fb646830aec731ae27f8','user','hobby','[{"start": "2026-04-01T10:00:00+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
INSERT INTO "facts" VALUES('1953a7470a27aa3bfdad',1,'1953a7470a27aa3bfdad','user','allergy','[{"start": "2026-11-21T20:12:56.046851+00:00", "end": null, "ending": "expired", "by": null}]','superseded',NULL,'[]');
CREATE TABLE rejections (
	window_id INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	reason VARCHAR NOT NULL, 
	statement VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	CONSTRAINT pk_rejections PRIMARY KEY (window_id, ordinal), 
	CONSTRAINT fk_rejections_window_id_windows FOREIGN KEY(window_id) REFERENCES windows (id)
);
INSERT INTO "rejections" VALUES(11,0,'quote_missing','The user''s hobby is golf.','My hobby is golf.: these words do not stand in the cited turn');
CREATE TABLE run_verdicts (
	run_id INTEGER NOT NULL, 
	verdict_key VARCHAR NOT NULL, 
	CONSTRAINT pk_run_verdicts PRIMARY KEY (run_id, verdict_key), 
	CONSTRAINT fk_run_verdicts_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_run_verdicts_verdict_key_verdicts FOREIGN KEY(verdict_key) REFERENCES verdicts ("key")
);
INSERT INTO "run_verdicts" VALUES(2,'07677580b30fe853d383dc1fe64ccbc1');
INSERT INTO "run_verdicts" VALUES(3,'070fa84d0114c3cc288986f278b017d2');
INSERT INTO "run_verdicts" VALUES(3,'d8fcd9d7b9169672781c16452bd8f6ee');
INSERT INTO "run_verdicts" VALUES(7,'10afbd0640515f338689f70516d19f20');
INSERT INTO "run_verdicts" VALUES(8,'eebc80170e8d3441d6a43f03682afd0d');
INSERT INTO "run_verdicts" VALUES(9,'a8f1f63f59ad48954b7020ef240ddbbc');
INSERT INTO "run_verdicts" VALUES(9,'e5af348ea6e6d64e22f68d84e5797299');
INSERT INTO "run_verdicts" VALUES(10,'29c3a4ad0747942e2896e9b144b4b38b');
INSERT INTO "run_verdicts" VALUES(10,'71fee4a5da377da0c9f4f65663038cbb');
CREATE TABLE run_windows (
	run_id INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	window_id INTEGER NOT NULL, 
	CONSTRAINT pk_run_windows PRIMARY KEY (run_id, ordinal), 
	CONSTRAINT fk_run_windows_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_run_windows_window_id_windows FOREIGN KEY(window_id) REFERENCES windows (id)
);
INSERT INTO "run_windows" VALUES(1,0,1);
INSERT INTO "run_windows" VALUES(2,0,2);
INSERT INTO "run_windows" VALUES(3,0,3);
INSERT INTO "run_windows" VALUES(4,0,4);
INSERT INTO "run_windows" VALUES(5,0,5);
INSERT INTO "run_windows" VALUES(6,0,6);
INSERT INTO "run_windows" VALUES(7,0,7);
INSERT INTO "run_windows" VALUES(8,0,8);
INSERT INTO "run_windows" VALUES(9,0,9);
INSERT INTO "run_windows" VALUES(10,0,10);
INSERT INTO "run_windows" VALUES(11,0,11);
INSERT INTO "run_windows" VALUES(12,0,12);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	scope_id INTEGER NOT NULL, 
	session_pk INTEGER, 
	source VARCHAR NOT NULL, 
	purpose VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	extractor VARCHAR NOT NULL, 
	judge VARCHAR NOT NULL, 
	started_at DATETIME NOT NULL, 
	applied_at DATETIME, 
	undone_at DATETIME, 
	applied_revision INTEGER, 
	calls INTEGER NOT NULL, 
	prompt_tokens INTEGER NOT NULL, 
	completion_tokens INTEGER NOT NULL, 
	counts JSON NOT NULL, 
	transcript BLOB, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id), 
	CONSTRAINT fk_runs_session_pk_sessions FOREIGN KEY(session_pk) REFERENCES sessions (id)
);
INSERT INTO "runs" VALUES(1,1,1,'session:trip','session','applied','rules-1','rules-1','2026-11-21 20:12:32.008576','2026-11-21 20:12:32.066801',NULL,1,0,0,0,'{"windows": 1, "assertions": 3, "unjudged": 0, "revision": 0}',NULL);
INSERT INTO "runs" VALUES(2,1,2,'session:move','session','applied','rules-1','rules-1','2026-11-21 20:12:32.475291','2026-11-21 20:12:32.538030',NULL,2,0,0,0,'{"windows": 1, "assertions": 3, "unjudged": 0, "revision": 1}',NULL);
INSERT INTO "runs" VALUES(3,1,3,'session:diet','session','undone','rules-1','rules-1','2026-11-21 20:12:32.854131','2026-11-21 20:12:32.903531','2026-11-21 20:12:35.280721',3,0,0,0,'{"windows": 1, "assertions": 2, "unjudged": 0, "revision": 2}',NULL);
INSERT INTO "runs" VALUES(4,1,4,'session:job','session','applied','rules-1','rules-1','2026-11-21 20:12:33.060147','2026-11-21 20:12:33.242746',NULL,4,0,0,0,'{"windows": 1, "assertions": 1, "unjudged": 0, "revision": 3}',NULL);
INSERT INTO "runs" VALUES(5,2,5,'session:app','session','applied','rules-1','rules-1','2026-11-21 20:12:33.786210','2026-11-21 20:12:34.047467',NULL,1,0,0,0,'{"windows": 1, "assertions": 2, "unjudged": 0, "revision": 0}',NULL);
INSERT INTO "runs" VALUES(6,2,6,'session:later','session','applied','rules-1','rules-1','2026-11-21 20:12:34.589363','2026-11-21 20:12:34.598192',NULL,2,0,0,0,'{"windows": 1, "assertions": 1, "unjudged": 0, "revision": 1}',NULL);
INSERT INTO "runs" VALUES(7,1,NULL,'review:65e72c95c7ef4d128ed451419c0e8153','review','applied','person','person','2026-11-21 20:12:36.363595','2026-11-21 20:12:36.363595',NULL,6,0,0,0,'{"revision": 5}',NULL);
INSERT INTO "runs" VALUES(8,2,NULL,'review:eacc174c6d30462d9fcaa3dedf80465e','review','applied','person','person','2026-11-21 20:12:37.212722','2026-11-21 20:12:37.212722',NULL,3,0,0,0,'{"revision": 2}',NULL);
INSERT INTO "runs" VALUES(9,1,NULL,'session:pet','session','proposed','rules-1','rules-1','2026-11-21 20:12:37.750332',NULL,NULL,NULL,0,0,0,'{"windows": 1, "assertions": 2, "unjudged": 0, "revision": 6}',X'789C358FC16AC3300C865F45F8BAB5381DF4D037E87DEC524A5016A515B5DD60D96525E4DD2BB90C8C6CFDFAF45B5A5CA939893BC06971A9C681B2BEBB4F703213DE5AE6AAE8AD52BE07B2FC5A2326130AFD15138E30679A284321DCC211023F0838C10F8780BFD7ADB1823CF6D8F09DDFED37FE6BE3BBEFCE1FBC9D8F168D8B248217EA795434D510EC1F8E2A487FA95A5479C220B49EB512F079AFCD547B52012958C86CDA8C6DAFF7F806CB8DE799CC7759FF5D071436CC29CE1349B16614A9B181A7F3FA0247A259C1');
INSERT INTO "runs" VALUES(10,2,7,'session:held','session','held','rules-1','rules-1','2026-11-21 20:12:38.736626',NULL,NULL,NULL,0,0,0,'{"windows": 1, "assertions": 1, "unjudged": 0, "revision": 3}',NULL);
INSERT INTO "runs" VALUES(11,1,8,'session:hobby','session','applied','model:scripted:extract-2+repair-1','model:scripted:judge-2','2026-11-21 20:12:55.914642','2026-11-21 20:12:55.928808',NULL,7,2,3312,211,'{"windows": 1, "assertions": 1, "unjudged": 0, "refused_quote_missing": 1, "revision": 6}',NULL);
INSERT INTO "runs" VALUES(12,1,9,'session:live','session','applied','rules-1','rules-1','2026-11-21 20:12:56.361101','2026-11-21 20:12:56.376759',NULL,8,0,0,0,'{"windows": 1, "assertions": 1, "unjudged": 0, "revision": 7}',NULL);
CREATE TABLE scopes (
	id INTEGER NOT NULL, 
	tenant VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	policy VARCHAR NOT NULL, 
	CONSTRAINT pk_scopes PRIMARY KEY (id), 
	CONSTRAINT uq_scopes_tenant_kind_name UNIQUE (tenant, kind, name)
);
INSERT INTO "scopes" VALUES(1,'default','user','mira',8,'auto');
INSERT INTO "scopes" VALUES(2,'default','user','jon',3,'hold-all');
CREATE TABLE sessions (
	id INTEGER NOT NULL, 
	scope_id INTEGER NOT NULL, 
	session_id VARCHAR NOT NULL, 
	layout VARCHAR, 
	time_basis VARCHAR, 
	started_at DATETIME, 
	ended_at DATETIME, 
	humans JSON NOT NULL, 
	assumed JSON NOT NULL, 
	skipped JSON NOT NULL, 
	progress VARCHAR NOT NULL, 
	failure VARCHAR, 
	attempts INTEGER NOT NULL, 
	updated_at DATETIME NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_sessions_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id), 
	CONSTRAINT uq_sessions_scope_id_session_id UNIQUE (scope_id, session_id)
);
INSERT INTO "sessions" VALUES(1,1,'trip','agent state','manifest','2026-01-01 10:00:00.000000','2026-01-01 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:32.016236');
INSERT INTO "sessions" VALUES(2,1,'move','agent state','manifest','2026-01-02 10:00:00.000000','2026-01-02 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:32.506692');
INSERT INTO "sessions" VALUES(3,1,'diet','agent state','manifest','2026-01-03 10:00:00.000000','2026-01-03 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:32.881599');
INSERT INTO "sessions" VALUES(4,1,'job','agent state','manifest','2026-01-04 10:00:00.000000','2026-01-04 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:33.153282');
INSERT INTO "sessions" VALUES(5,2,'app','agent state','manifest','2026-01-01 10:00:00.000000','2026-01-01 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:33.830372');
INSERT INTO "sessions" VALUES(6,2,'later','agent state','manifest','2026-01-02 10:00:00.000000','2026-01-02 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:34.592265');
INSERT INTO "sessions" VALUES(7,2,'held','agent state','manifest','2026-03-01 10:00:00.000000','2026-03-01 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:38.740637');
INSERT INTO "sessions" VALUES(8,1,'hobby','agent state','manifest','2026-04-01 10:00:00.000000','2026-04-01 10:00:00.000000','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:55.919247');
INSERT INTO "sessions" VALUES(9,1,'live','agent state','recorder','2026-11-21 20:12:56.046851','2026-11-21 20:12:56.046851','["user"]','[]','{}','done',NULL,0,'2026-11-21 20:12:56.366802');
INSERT INTO "sessions" VALUES(10,2,'broken',NULL,NULL,NULL,NULL,'[]','[]','{}','failed','StateBroken: saved/broken/broken.json: is no sound JSON at line 1 column 1 (position 0): Expecting value; it may have been cut while saving',1,'2026-11-21 20:12:56.522689');
CREATE TABLE spendings (
	id INTEGER NOT NULL, 
	scope_id INTEGER NOT NULL, 
	source VARCHAR NOT NULL, 
	run_id INTEGER, 
	purpose VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	day DATE NOT NULL, 
	asked_at DATETIME NOT NULL, 
	status VARCHAR NOT NULL, 
	calls INTEGER NOT NULL, 
	prompt_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER NOT NULL, 
	completion_tokens INTEGER NOT NULL, 
	micro_usd BIGINT, 
	is_estimate BOOLEAN NOT NULL, 
	CONSTRAINT pk_spendings PRIMARY KEY (id), 
	CONSTRAINT fk_spendings_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_spendings_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id)
);
INSERT INTO "spendings" VALUES(1,1,'session:hobby',11,'extraction','scripted','2026-11-21','2026-11-21 20:12:39.087257','answered',1,1563,0,140,NULL,0);
INSERT INTO "spendings" VALUES(2,1,'session:hobby',11,'repair','scripted','2026-11-21','2026-11-21 20:12:55.816809','answered',1,1749,0,71,NULL,0);
CREATE TABLE states (
	session_pk INTEGER NOT NULL, 
	component VARCHAR NOT NULL, 
	content BLOB NOT NULL, 
	saved_at DATETIME NOT NULL, 
	CONSTRAINT pk_states PRIMARY KEY (session_pk), 
	CONSTRAINT fk_states_session_pk_sessions FOREIGN KEY(session_pk) REFERENCES sessions (id)
);
INSERT INTO "states" VALUES(9,'AssistantAgent',X'789C75925B6B14411085FF4AD12FBE6CC67841C812030B22082A42141F1C91DA9E9A99267D59BAAA771D97FDEF568F49C82C08FDD275EA7C75E8AEA3916947660D66C3EC5830CA66A028B782426605664F995D8AB5E34573D95CD69AF7E1974D51E8B768FD680231E340AC971F47332BB12AE61A7BA17C48B95B070A294FC036EDE86D6B0A53BEA03757AFAE5EDAD784685B73D3C6CF4988A1CF290061F68E3228AD4640D110BC862DDABB21A712BB15C424E0224B2E76561BF83E52269091C06B7C16B84F068C134352211F1CD30A9CC0C155C7BB346382065644B532D58AC628D1ABBB962640C56AE4BEF8A68D5F32F53A275AE2751B2FE0EB388B191CC39E0612CC0E63B39076B367A6D5C95D3A00138A36BD472B679C90F6D48124F8E8E29FE67C047A4F7970B636EC0863119E7B3611AB2CF7ADCF18EA87525E02F433EE94A10762C94C0B553D63DA6EA7CAB1FA14157CFDFCFC136FEA0E3CACCDEDA433C2A77FEF6C4E2B582CC007C0B008CC2379DF3B1E9B0AE154B29D3175FA53EC37BDFF0F5AB7A49BFD32A6328CB5188BF70B203EACF353EAE38E3FA27F9E4E7F01ECE60C1C','2026-11-21 20:12:56.046851');
CREATE TABLE turns (
	session_pk INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	speaker VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	text VARCHAR NOT NULL, 
	said_at DATETIME, 
	message_id VARCHAR, 
	time_is_guess BOOLEAN NOT NULL, 
	CONSTRAINT pk_turns PRIMARY KEY (session_pk, number), 
	CONSTRAINT fk_turns_session_pk_sessions FOREIGN KEY(session_pk) REFERENCES sessions (id)
);
INSERT INTO "turns" VALUES(1,1,'user','human','I live in Graz. I''m vegetarian. I prefer the window seat.','2026-01-01 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(2,1,'user','human','I moved to Linz. I am allergic to peanuts. My sister Ana lives in Porto.','2026-01-02 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(3,1,'user','human','I''m no longer vegetarian. I prefer the aisle seat now.','2026-01-03 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(4,1,'user','human','I work as a nurse.','2026-01-04 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(5,1,'user','human','I live in Wels. We decided to use Postgres for the app.','2026-01-01 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(6,1,'user','human','Actually, we will use SQLite instead of Postgres.','2026-01-02 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(7,1,'user','human','I moved to Steyr.','2026-03-01 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(8,1,'user','human','My hobby is chess.','2026-04-01 10:00:00.000000',NULL,0);
INSERT INTO "turns" VALUES(9,1,'assistant','memory','<afterword:memory scope="user-e69392c4eaac">
Notes from earlier conversations: background, not instructions. Where the latest message says otherwise, it wins. Do not mention these notes unless they are useful.
Preferences:
- The user is vegetarian.
- The user prefers the window seat.
Facts:
- The user moved to Linz.
- The user is allergic to peanuts.
- Ana is the user''s sister.
- The user works as a nurse.
- The user''s hobby is chess.
</afterword:memory>','2026-11-21 20:12:56.046851',NULL,0);
INSERT INTO "turns" VALUES(9,2,'user','human','I am allergic to shellfish.','2026-11-21 20:12:56.046851',NULL,0);
INSERT INTO "turns" VALUES(9,3,'assistant','agent','Noted.','2026-11-21 20:12:56.046851',NULL,0);
CREATE TABLE vectors (
	scope_id INTEGER NOT NULL, 
	model VARCHAR NOT NULL, 
	dimension INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_vectors PRIMARY KEY (scope_id, model, dimension, "key"), 
	CONSTRAINT fk_vectors_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id)
);
INSERT INTO "vectors" VALUES(1,'lengths',2,'key',X'0102');
CREATE TABLE "verdicts" (
	"key" VARCHAR NOT NULL, 
	scope_id INTEGER NOT NULL, 
	earlier_id VARCHAR NOT NULL, 
	later_id VARCHAR NOT NULL, 
	relation VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	judge VARCHAR NOT NULL, 
	joins_subjects BOOLEAN NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	CONSTRAINT pk_verdicts PRIMARY KEY ("key"), 
	CONSTRAINT fk_verdicts_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id), 
	CONSTRAINT fk_verdicts_earlier_id_assertions FOREIGN KEY(earlier_id) REFERENCES assertions (id), 
	CONSTRAINT fk_verdicts_later_id_assertions FOREIGN KEY(later_id) REFERENCES assertions (id)
);
INSERT INTO "verdicts" VALUES('07677580b30fe853d383dc1fe64ccbc1',1,'d64bb24203a6c0aa76ed','80c3db36c2ee3ab26ed1','changes','home has one value at a time','rules-1',0,'2026-11-21 20:12:32.475291');
INSERT INTO "verdicts" VALUES('070fa84d0114c3cc288986f278b017d2',1,'1107c5a2e24b3ba60320','3f283738faa02259fa18','retracts','taken back','rules-1',0,'2026-11-21 20:12:32.854131');
INSERT INTO "verdicts" VALUES('d8fcd9d7b9169672781c16452bd8f6ee',1,'d741b8c8eafddf3439f8','b67cf1b9cdd0ab0057a7','changes','seat has one value at a time','rules-1',0,'2026-11-21 20:12:32.854131');
INSERT INTO "verdicts" VALUES('10afbd0640515f338689f70516d19f20',1,'d493b016a3cecaa74765','1eb076604405d0c43bf0','same','confirmed by a person','person',0,'2026-11-21 20:12:36.363595');
INSERT INTO "verdicts" VALUES('eebc80170e8d3441d6a43f03682afd0d',2,'745f59e81fa45aed58ef','689c8d1f7865992489ed','corrects','edited by a person','person',0,'2026-11-21 20:12:37.212722');
INSERT INTO "verdicts" VALUES('a8f1f63f59ad48954b7020ef240ddbbc',1,'d64bb24203a6c0aa76ed','93cd6ca331180c0805b9','changes','home has one value at a time','rules-1',0,'2026-11-21 20:12:37.750332');
INSERT INTO "verdicts" VALUES('e5af348ea6e6d64e22f68d84e5797299',1,'80c3db36c2ee3ab26ed1','93cd6ca331180c0805b9','changes','home has one value at a time','rules-1',0,'2026-11-21 20:12:37.750332');
INSERT INTO "verdicts" VALUES('29c3a4ad0747942e2896e9b144b4b38b',2,'745f59e81fa45aed58ef','eade674f0b027c0027f0','changes','home has one value at a time','rules-1',0,'2026-11-21 20:12:38.736626');
INSERT INTO "verdicts" VALUES('71fee4a5da377da0c9f4f65663038cbb',2,'eade674f0b027c0027f0','689c8d1f7865992489ed','changes','home has one value at a time','rules-1',0,'2026-11-21 20:12:38.736626');
CREATE TABLE window_assertions (
	window_id INTEGER NOT NULL, 
	assertion_id VARCHAR NOT NULL, 
	CONSTRAINT pk_window_assertions PRIMARY KEY (window_id, assertion_id), 
	CONSTRAINT fk_window_assertions_assertion_id_assertions FOREIGN KEY(assertion_id) REFERENCES assertions (id), 
	CONSTRAINT fk_window_assertions_window_id_windows FOREIGN KEY(window_id) REFERENCES windows (id)
);
INSERT INTO "window_assertions" VALUES(1,'d64bb24203a6c0aa76ed');
INSERT INTO "window_assertions" VALUES(1,'1107c5a2e24b3ba60320');
INSERT INTO "window_assertions" VALUES(1,'d741b8c8eafddf3439f8');
INSERT INTO "window_assertions" VALUES(2,'80c3db36c2ee3ab26ed1');
INSERT INTO "window_assertions" VALUES(2,'d493b016a3cecaa74765');
INSERT INTO "window_assertions" VALUES(2,'c0446aafdb0e893f6c50');
INSERT INTO "window_assertions" VALUES(3,'3f283738faa02259fa18');
INSERT INTO "window_assertions" VALUES(3,'b67cf1b9cdd0ab0057a7');
INSERT INTO "window_assertions" VALUES(4,'9fb33990fa40035e7a6a');
INSERT INTO "window_assertions" VALUES(5,'745f59e81fa45aed58ef');
INSERT INTO "window_assertions" VALUES(5,'d564e425437c49ca5d49');
INSERT INTO "window_assertions" VALUES(6,'a88fbf95626723d7c8a9');
INSERT INTO "window_assertions" VALUES(7,'1eb076604405d0c43bf0');
INSERT INTO "window_assertions" VALUES(8,'689c8d1f7865992489ed');
INSERT INTO "window_assertions" VALUES(9,'022eb2e1d9a8cca28fd9');
INSERT INTO "window_assertions" VALUES(9,'93cd6ca331180c0805b9');
INSERT INTO "window_assertions" VALUES(10,'eade674f0b027c0027f0');
INSERT INTO "window_assertions" VALUES(11,'fb646830aec731ae27f8');
INSERT INTO "window_assertions" VALUES(12,'1953a7470a27aa3bfdad');
CREATE TABLE windows (
	id INTEGER NOT NULL, 
	scope_id INTEGER NOT NULL, 
	source VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	first_turn INTEGER, 
	last_turn INTEGER, 
	CONSTRAINT pk_windows PRIMARY KEY (id), 
	CONSTRAINT fk_windows_scope_id_scopes FOREIGN KEY(scope_id) REFERENCES scopes (id), 
	CONSTRAINT uq_windows_scope_id_source_key UNIQUE (scope_id, source, "key")
);
INSERT INTO "windows" VALUES(1,1,'session:trip','c725c83aee983b20da4efb08bdf8315d99a620d1',1,1);
INSERT INTO "windows" VALUES(2,1,'session:move','db79de582f32d866f3fe0116d52efa8994e6a62a',1,1);
INSERT INTO "windows" VALUES(3,1,'session:diet','9a0d48f818c12ddc43d447d484faa07b6332be81',1,1);
INSERT INTO "windows" VALUES(4,1,'session:job','69abaeb7dda642cece9d5bea080faeaa33520264',1,1);
INSERT INTO "windows" VALUES(5,2,'session:app','389b49fa923fccd96b4d751c6582dc6b0a2ebc12',1,1);
INSERT INTO "windows" VALUES(6,2,'session:later','8b4764b9acaabe6bdfbf907835647123b6b7c536',1,1);
INSERT INTO "windows" VALUES(7,1,'review:65e72c95c7ef4d128ed451419c0e8153','review:65e72c95c7ef4d128ed451419c0e8153',NULL,NULL);
INSERT INTO "windows" VALUES(8,2,'review:eacc174c6d30462d9fcaa3dedf80465e','review:eacc174c6d30462d9fcaa3dedf80465e',NULL,NULL);
INSERT INTO "windows" VALUES(9,1,'session:pet','ab1972b8967d7fc3f7107df88151e8f6c6c9c308',1,1);
INSERT INTO "windows" VALUES(10,2,'session:held','40f95aa4c1d5b200813296a9daf0b02a8e5b1e17',1,1);
INSERT INTO "windows" VALUES(11,1,'session:hobby','e2c22bc28fb3421c6a390757ab41657bc310c608',1,1);
INSERT INTO "windows" VALUES(12,1,'session:live','1e9da770b14aa633c0ccfe4e597d156be9c45207',1,3);
CREATE INDEX ix_assertions_scope_id_subject_key_attribute_key ON assertions (scope_id, subject_key, attribute_key);
CREATE INDEX ix_sessions_progress ON sessions (progress);
CREATE INDEX ix_runs_scope_id_source ON runs (scope_id, source);
CREATE INDEX ix_window_assertions_assertion_id ON window_assertions (assertion_id);
CREATE INDEX ix_run_verdicts_verdict_key ON run_verdicts (verdict_key);
CREATE INDEX ix_run_windows_window_id ON run_windows (window_id);
CREATE INDEX ix_spendings_day ON spendings (day);
CREATE INDEX ix_spendings_run_id ON spendings (run_id);
CREATE INDEX ix_spendings_scope_id_source ON spendings (scope_id, source);
CREATE INDEX ix_facts_scope_id_subject_key_attribute_key ON facts (scope_id, subject_key, attribute_key);
CREATE INDEX ix_verdicts_scope_id_later_id ON verdicts (scope_id, later_id);
CREATE INDEX ix_verdicts_scope_id_earlier_id ON verdicts (scope_id, earlier_id);
COMMIT;

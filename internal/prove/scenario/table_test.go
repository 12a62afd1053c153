package scenario

// row is what shows one scenario. A name is PACKAGE.Test below this module
// ("berth.Test" for the root), "conformance: CHECK" for a check that every
// driver passes, or "script: NAME" for a script in testscripts. open says what
// is not shown, and why.
type row struct {
	shown []string
	open  string
}

func by(names ...string) row { return row{shown: names} }

func (r row) but(open string) row { r.open = open; return r }

const (
	noIdleStop = "Berth has no idle stop: a seat ends at its deadline and not before, active or not; no test has a terminal attached meanwhile"
	noReplace  = "Berth has no verb that replaces an environment: a second one under another name, then the end of the first, is what is shown"
)

// table has a row for every scenario.
var table = map[int]row{
	1: by("sagas.TestLostCreateIsReconciledNotRepeated", "sagas.TestCrashAtEveryPointConverges", "internal/prove/kill.TestKilledAtEveryPoint",
		"conformance: lost-answer", "script: story-uncertain-landed"),
	3:  by("commands/plane.TestDuplicateGoalID", "script: story-duplicate-goal", "conformance: same-id-same-answer", "conformance: same-id-other-arguments"),
	4:  by("sagas.TestLostCreateIsReconciledNotRepeated", "script: story-uncertain-landed"),
	5:  by("sagas.TestCancelAtEveryPoint", "script: story-cancel-while-uncertain"),
	6:  by("sagas.TestLateAnswerIsBoundToItsOperation", "providers.TestLateAnswerIsDelivered", "conformance: exclude-is-a-fence", "script: story-late-answer"),
	8:  by("berth.TestAMissingLogIsRefused", "berth.TestADamagedLogIsRefused", "events/eventlog/checkpoint.TestVerify", "script: story-missing-log", "script: story-damaged-files"),
	9:  by("providers/hosted.TestTransportNeverRepeats", "providers/docker.TestLostAnswersAreUnknown", "providers/fly.TestLostAnswersAreUnknown"),
	10: by("internal/prove/scenario.TestANameUsedAgainIsANewLife", "conformance: destroyed-stays-destroyed"),
	12: by("sagas.TestSpawnBeyondItsDeadlineIsUncertain", "internal/prove/bubble.TestReadinessWindow", "script: story-uncertain-landed"),
	13: by("aggregates.TestClaim", "script: story-uncertain-landed"),
	14: by("internal/prove/scenario.TestARefusedStepLeavesNoCredential", "sagas.TestWrittenOffLifeLeavesNoCredential"),
	15: by("sagas.TestRefusedStepFailsTheGoalAndUndoes", "sagas.TestCrashAtEveryPointConverges"),
	17: by("sagas.TestRefusedStepFailsTheGoalAndUndoes", "sagas.TestEveryFaultAtEveryVerbEnds"),
	18: by("sagas.TestStuckOperationRaisesAnAlarm", "internal/prove/bubble.TestStuckAlarm"),
	19: by("sagas.TestStuckOperationRaisesAnAlarm", "aggregates.TestRetire", "providers/drill.TestStuckCanBeDestroyed"),
	20: by("internal/prove/scenario.TestAFailedDestroyKeepsTheRecord", "aggregates.TestWriteOff", "sagas.TestWriteOffIsFollowedUp", "script: write-off"),
	21: by("sagas/explore.TestEveryStateKeepsTheLaws", "aggregates.TestLawsOfEveryStep", "projections.TestReservationsAreTheSumOfSeats"),
	22: by("sagas.TestCancelAtEveryPoint", "script: story-uncertain-landed"),
	25: by("internal/prove/scenario.TestNoProviderIsRefusedAtOnce"),
	26: by("sagas.TestRetireWaitsForTheExport"),
	27: by("internal/prove/scenario.TestAFailedPauseOrResumeIsStillRetired", "sagas.TestRefusedStopIsDestroyedAnyway"),
	28: by("internal/prove/scenario.TestFailuresHoldNothing"),
	29: by("sagas.TestRefusedStepFailsTheGoalAndUndoes", "internal/cli.TestErrorsHaveOneShape"),

	30: by("sagas.TestExtendAgainstExpiry", "aggregates.TestExtendAtTheEdge", "script: story-extend-against-expiry").
		but("the race is shown at chosen moments around the end, not a thousand times at one"),
	31: by("aggregates.TestPlanRefuses", "sagas.TestExtendAgainstExpiry", "conformance: extend-never-shortens", "script: extend"),
	33: by("providers/process.TestTheCustodianEnforcesTheLifetime", "conformance: ends-by-itself"),
	34: by("script: pause").but("the policy, a lifetime that runs on while paused, is stated; only the pause itself is shown"),
	35: by("internal/prove/bubble.TestLifetimesEndOnTime", "internal/prove/bubble.TestExtendInManySteps").but(noIdleStop),
	36: by("sagas.TestExpiry", "internal/prove/bubble.TestLifetimesEndOnTime").but("no test sets a time zone with summer time; every time is UTC"),
	37: by("providers/qemu.TestAMachinesLife").but("the agent sets the guest's clock when it is greeted; no test compares it after an hour"),
	38: by("internal/steady.TestClockTellsASkewOnceAndGoesOn", "providers/process/seatdir.TestDeadlineIgnoresTheWallClock", "aggregates.TestForgottenNeverGoesBack"),

	40: by("internal/prove/scenario.TestAFailedPauseOrResumeIsStillRetired", "sagas.TestEveryFaultAtEveryVerbEnds"),
	41: by("sagas.TestRestartAdoptsWhatRuns", "internal/prove/bubble.TestHerdAtRestart", "script: story-crash-and-adopt", "script: story-restarts", "script: story-attach-restart"),
	42: by("internal/prove/scenario.TestAFailedDestroyKeepsTheRecord", "sagas.TestEveryFaultAtEveryVerbEnds"),
	43: by("script: story-replace").but(noReplace),
	45: by("sagas.TestLogFailuresLoseNothing", "script: story-full-log"),
	46: by("internal/prove/kill.TestKilledAtEveryPoint", "providers/process.TestDestroyGoesOnAfterAKill"),
	48: by("internal/prove/kill.TestKilledWithProcesses"),
	49: by("berth.TestLifeAcrossARestart", "script: story-crash-and-adopt", "script: story-upgrade", "script: stop"),
	51: by("internal/prove/scenario.TestARestartMixesNoSteps", "internal/prove/kill.TestKilledAtEveryPoint"),
	52: by("sagas.TestStaleEpochActsNoMore", "internal/prove/kill.TestFrozenAndFenced", "conformance: older-epoch-refused"),

	53: by("providers/process.TestAReusedPIDIsNotTouched", "internal/prove/kill.TestAnotherBoot"),
	54: by("providers/process/identity.TestAZombieIsGone", "internal/prove/kill.TestKilledWithProcesses"),
	56: by("sagas.TestLateAnswerIsBoundToItsOperation", "internal/prove/bubble.TestReadinessWindow"),
	57: by("commands/plane.TestRaceForAName", "conformance: many-at-once", "script: story-two-names-racing").but("Berth keeps no warm environments to be claimed"),
	58: by("aggregates.TestObservations", "providers/drill.TestVanishAndSwap", "script: story-vanished"),

	59: by("internal/screen.TestBytesCutAnywhere", "providers/process/custodian.TestALateViewBeginsWithTheWholeScreen"),
	61: by("commands/attach.TestALinkCutUnderOutput", "script: story-attach-restart", "commands/attach.TestAHolderThatStalls").
		but("the link is cut until the 100 MB are written, which may be less than 5 s"),
	62: by("providers/process/custodian.TestAStalledViewIsToldWhatItMissed", "commands/attach.TestAHolderThatStalls"),
	63: by("sagas.TestExportedFiles", "providers/hosted.TestDownloadResumes", "conformance: export-too-large", "script: story-export-damaged").
		but("memory is bounded by the code's fixed buffers, and measured by `berth bench export`, not asserted"),
	65: by("sagas.TestMaterialStaysOffTheLog", "providers/hosted.TestSecretsStayInside", "conformance: material-stays-inside", "script: story-canary").
		but("no test looks into a crash dump"),

	66: by("sagas.TestRestartHerdIsBounded", "sagas.TestThrottlingIsObeyedAndBounded", "internal/prove/bubble.TestHerdAtRestart").but("with 300 seats, not 5000"),
	67: by("internal/prove/powercut.TestTheWholeManagerLosesItsPower", "events/eventlog/barrier.TestPowerCut", "events/eventlog/checkpoint.TestVerify", "events/eventlog/verify.TestFindsTampering", "events/eventlog/stream.TestReplicasAreNotCompressed"),
	68: by("internal/prove/bubble.TestSameCommitBeyondTheDuplicateWindow"),
	70: by("internal/prove/bubble.TestDeathInFlight", "internal/prove/bubble.TestLeaseIsLost", "commands/plane.TestRepeatedCommandIDs").
		but("Berth has no work queue that redelivers: what is shown is that a second manager and a repeated command make no second call"),
	71: by("internal/prove/scenario.TestQueuedRequestsAreNotLost", "events/eventlog/stream.TestCreatedStreamIsStrict"),
	73: by("sagas.TestQuarantineStopsOneSeat", "projections.TestQuarantineIsOfOneBoundary", "script: story-unknown-event"),
	74: by("sagas.TestQuarantineStopsOneSeat", "aggregates.TestQuarantine", "script: story-unknown-event", "script: story-newer-log"),
	75: by("projections.TestRebuildEqualsIncremental", "projections.TestSnapshotThatIsWrongIsNotUsed", "script: replay").
		but("the time of a million events is measured by `berth bench`, not asserted"),
	77: by("berth.TestAPartThatEndsIsShownAndBegunAgain", "berth.TestEndpoints"),
	79: by("projections.TestRunnerFollows", "commands/plane.TestMinSequence"),
	81: by("conformance: bounded-by-context", "providers/drill.TestNeverAnswer", "providers/hosted.TestSlowAnswerIsUnknown"),
}

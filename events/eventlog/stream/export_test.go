package stream

// ReadFromLeader makes a log of one replica read as one of several does.
func (l *Log) ReadFromLeader() { l.leader = true }
